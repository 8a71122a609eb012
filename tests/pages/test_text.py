from sessions.pages.arguments import argument_text, arguments_of
from sessions.pages.text import INLINE_CHARACTERS, OUTPUT, fold, visible


def test_control_characters_are_shown():
    assert visible("\x1b[31mred\x00\ttab\r\nend") == "␛[31mred␀\ttab\nend"


def test_characters_that_reorder_text_are_shown_by_code():
    assert visible("user‮nimda") == "user⟨U+202E⟩nimda"


def test_lone_surrogates_do_not_break_the_page():
    assert visible("a\ud83d b").encode() == "a\ufffd b".encode()


def test_a_short_text_is_not_folded():
    folded = fold("one\ntwo", OUTPUT)
    assert (folded.is_folded, folded.start, folded.lines, folded.characters) == (False, "one\ntwo", 2, 7)


def test_a_text_a_little_over_the_rule_is_not_folded():
    assert not fold("\n".join("x" * 18), OUTPUT).is_folded


def test_a_long_text_shows_its_first_lines_and_carries_the_rest():
    text = "\n".join(str(number) for number in range(100))
    folded = fold(text, OUTPUT)
    assert folded.is_folded
    assert folded.start == "\n".join(str(number) for number in range(12))
    assert folded.whole == text


def test_a_very_long_text_is_fetched_on_request():
    folded = fold("x" * (INLINE_CHARACTERS + 1), OUTPUT)
    assert folded.is_folded
    assert folded.whole is None
    assert len(folded.start) == OUTPUT.characters


def test_short_arguments_are_inline():
    (argument,) = arguments_of('{"path": "a.py"}')
    assert (argument.name, argument.short) == ("path", "a.py")


def test_a_text_of_many_lines_is_a_block():
    (argument,) = arguments_of('{"content": "a\\nb"}')
    assert argument.block is not None
    assert argument.block.start == '<pre class="text">\na\nb</pre>'


def test_an_edit_is_a_diff():
    arguments = arguments_of(
        '{"file_path": "a", "old_string": "x = 1\\ny = 2", "new_string": "x = 1\\ny = 3"}'
    )
    assert [argument.name for argument in arguments] == ["file_path", "change"]
    assert [(line.sign, line.text) for line in arguments[1].diff] == [
        (" ", "x = 1"),
        ("−", "y = 2"),
        ("+", "y = 3"),
    ]


def test_an_edit_too_long_to_compare_is_two_blocks():
    long = "\\n".join(["line"] * 400)
    arguments = arguments_of(f'{{"old_string": "{long}", "new_string": "short"}}')
    assert [argument.name for argument in arguments] == ["old_string", "new_string"]


def test_arguments_that_are_not_an_object_are_shown_unchanged():
    (argument,) = arguments_of("not json")
    assert argument.short == "not json"


def test_a_structure_is_a_tree():
    (argument,) = arguments_of('{"todos": [{"content": "<a>", "status": "done"}]}')
    assert argument.tree is not None
    assert argument.tree.count("<details") == 2
    assert '<span class="json-string">&lt;a&gt;</span>' in argument.tree
    assert argument_text('{"todos": [1, 2]}', "todos") == "[\n  1,\n  2\n]"


def test_an_unknown_argument():
    assert argument_text("{}", "content") is None
