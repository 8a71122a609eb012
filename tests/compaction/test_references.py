"""Identifiers are strings that a reader cannot guess. Plain words are not identifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.identifiers import runs as run_names
from compaction.identifiers import texts as text_names
from compaction.identifiers.extract import (
    Kind,
    forget,
    forms,
    kind_of,
    mentions,
    references,
)
from compaction.identifiers.texts import argument_names, counted_names, message_references, names_of
from compaction.messages import Message, Role, Text, Thinking, ToolCall, ToolResult


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open src/pool.py now", {"src/pool.py", "pool.py"}),
        ("open ./src/pool.py.", {"src/pool.py", "pool.py"}),
        ("in /usr/lib/", {"/usr/lib"}),
        ("→docs/U\u0308ber.md✓", {"docs/U\u0308ber.md", "U\u0308ber.md"}),  # as macOS writes it
        ("~/notes/.env", {"~/notes/.env", ".env"}),
        ("src/pool.py:120: boom", {"src/pool.py", "pool.py", "120"}),
        ("src/pool.py-12-    def x", {"src/pool.py", "pool.py"}),
        ("import { x } from '@scope/pkg/sub'", {"@scope/pkg/sub"}),
        ("Makefile.am and .gitignore", {"Makefile.am", ".gitignore"}),
        ("and/or, yes/no", set()),
        ("self.max_size", {"self.max_size", "max_size"}),
        ("os.path.join(a)", {"os.path.join"}),
        ("std::PoolError", {"PoolError"}),
        ("HTTPServer fooBar FooBar", {"HTTPServer", "fooBar", "FooBar"}),
        (
            "acquire_timeout MAX_SIZE _private __init__",
            {"acquire_timeout", "MAX_SIZE", "_private", "__init__"},
        ),
        ("well-known --no-verify claude-code-log", {"claude-code-log"}),
        ("mail ann@example.org!", {"ann@example.org"}),
        ("see https://example.org/a/b?x=1#y.", {"https://example.org/a/b"}),
        ("commit a1b2c3d4, flight HAT045, v1.2.3", {"a1b2c3d4", "HAT045", "v1.2.3"}),
        ("costs 450 or 3.5, not 12", {"450", "3.5"}),
        ("--- PASS: Test_one (3.540s) 14ms \x1b[39m, sed -n 650,660p, lines 113-119", {"Test_one", "650"}),
        ("a 24-bit color, 2026-11-26, 555-1234", {"2026-11-26", "555-1234"}),
        ("<tool_use_error>no</tool_use_error>, cat </etc/hosts", {"tool_use_error", "/etc/hosts"}),
        ("Hello, this is e.g. a plain sentence: i.e. no IDs or URLs...", set()),
        ("“über_maß”→baz_q", {"über_maß", "baz_q"}),
        ("first\\nsecond_one\\tthird_one", {"second_one", "third_one"}),
        ("", set()),
        ("\ud800 lone", set()),
        ("h_abcdefghi1 (h_abcdefghi1). -h_abcdefghi1. @h_abcdefghi1", set()),
        ("a.h_abcdefghi1 x/h_abcdefghi1.py path_abcdefghi1", {"path_abcdefghi1"}),
    ],
)
def test_identifiers_in_a_text_are_found(text: str, expected: set[str]) -> None:
    assert references(text) == expected


def test_line_numbers_in_the_margin_are_not_mentions() -> None:
    assert references("   119→def evict_all():\n   120→    return 4096\n") == {"evict_all", "4096"}
    assert references("Result of cat -n:\n   119\tevict_all\n   120\tx\n") == {"evict_all"}
    assert references("119:\tevict_all\n120-\tx\n121-func put_all()") == {"evict_all", "put_all"}
    assert references("File: a.py\nL119: evict_all\nL120:   x\n") == {"a.py", "evict_all"}


def test_long_runs_are_data_and_are_skipped_fast() -> None:
    assert references("a1" * 500_000) == frozenset()


def test_mentions_keep_order_and_repetition() -> None:
    assert list(mentions("b_1 a_1 b_1")) == ["b_1", "a_1", "b_1"]


TOLD = "read b_1 and src/a.py, then b_1 again"


def test_mentions_are_counted_in_the_order_of_first_mentions() -> None:
    assert names_of(TOLD) == ("b_1", "src/a.py", "a.py")
    assert counted_names(TOLD).counts == (2, 1, 1)


@given(st.text(max_size=30) | st.text(alphabet="aB_9./:-@ \u00b7\u0301é", min_size=1, max_size=12))
def test_a_name_has_itself_and_its_short_forms_as_forms(name: str) -> None:
    assert forms(name) == references(name) | {name}


def test_results_do_not_depend_on_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    fresh = [*mentions(TOLD)]
    assert [*mentions(TOLD)] == fresh
    monkeypatch.setattr(run_names, "_MAX_RUNS", 2)  # the cache is always full
    forget()
    assert [*mentions(TOLD)] == fresh


@given(st.lists(st.text(alphabet="abAB1_.:/-@~é", min_size=1, max_size=9), min_size=4, max_size=40))
def test_many_runs_have_the_same_names_as_each_alone(found: list[str]) -> None:
    runs = {run.encode() for run in (*found, *(f"{run}." for run in found), "src/pool_a.py", "x" * 300)}
    known = run_names.RunNames()
    assert {run: known[run] for run in runs} == {run: run_names.RunNames()[run] for run in runs}


def test_a_text_has_the_same_names_when_the_process_has_forgotten_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh, arguments = names_of(TOLD), argument_names('{"path": "a_1.py"}')
    assert names_of(TOLD) == fresh
    monkeypatch.setattr(text_names, "_KEPT", 0)  # the cache is always full
    for text in ("c_1", TOLD, '{"path": "a_1.py"}', TOLD):
        names_of(text)
    assert names_of(TOLD) == fresh
    assert argument_names('{"path": "a_1.py"}') == arguments == ("a_1.py",)


def test_arguments_and_a_text_with_the_same_characters_are_different() -> None:
    arguments = '{"snake_key": "value_1"}'
    assert names_of(arguments) == ("snake_key", "value_1")
    assert argument_names(arguments) == ("value_1",)


def test_references_of_a_message_exclude_thinking() -> None:
    message = Message(
        position=0,
        role=Role.ASSISTANT,
        parts=(
            Thinking(text="secret_thought"),
            Text(text="word_one"),
            ToolCall(
                call_id="c1",
                name="Read",
                arguments='{"path": "a/b_c.py", "n": [4096, "line\\nname_x"]}',
            ),
            ToolCall(call_id="c2", name="Bash", arguments="not json_at_all"),
            ToolResult(call_id="c3", text="result_one"),
        ),
    )
    assert message_references(message) == {
        *("word_one", "result_one", "a/b_c.py", "b_c.py", "4096", "name_x", "json_at_all")
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("https://example.org/a", Kind.URL),
        ("ann@example.org", Kind.EMAIL),
        ("src/pool.py", Kind.PATH),
        ("pool.py", Kind.PATH),
        ("pool.PoolError", Kind.NAME),
        ("acquire_timeout", Kind.NAME),
        ("4096", Kind.NUMBER),
        ("3.5", Kind.NUMBER),
        ("a1b2c3d4", Kind.ID),
    ],
)
def test_kinds_of_identifiers_are_distinguished(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


@pytest.mark.trajectories
def test_identifiers_of_real_messages_occur_in_them(trajectories) -> None:
    from pathlib import Path

    for path in sorted(Path(trajectories).glob("swe-agent/*"))[:3]:
        if path.suffix == ".gz":
            continue
        text = path.read_text()
        found = references(text)
        assert found
        assert all(name in text for name in found)
