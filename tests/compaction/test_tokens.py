"""Token counts: the bundled vocabulary, unusual texts, and the overhead of messages."""

import threading
from functools import cache
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import text_cache
from compaction.adapters import tokenizer as tokenizers
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.adapters.tokenizer import Fastokens, tokenizer, vocabulary
from compaction.messages import Message, Opaque, Role, Text, ToolCall, ToolResult
from compaction.sizes.tokens import (
    MESSAGE_OVERHEAD,
    PART_OVERHEAD,
    CharacterCounter,
    NameSizes,
    message_tokens,
)


@pytest.fixture(scope="module")
def counter() -> TiktokenCounter:
    return TiktokenCounter()


def test_counts_equal_those_of_the_vocabulary(counter: TiktokenCounter) -> None:
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("tokenization of 12345") == 6


#: Text with what the splitting pattern treats differently: contractions, numbers, spaces, line breaks, marks,
#: special tokens and lone surrogates.
TEXTS = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(
            ["don't", "I'LL", "12345", "  ", "\n", "\r\n", "\t", "\u3000", "///", "<|endoftext|>", "\ud800"]
        ),
    )
).map("".join)


@cache
def fastokens() -> Fastokens:
    return Fastokens(vocabulary())


@pytest.mark.slow
@given(TEXTS)
def test_fastokens_returns_the_tokens_of_tiktoken(text: str) -> None:
    tokens = tokenizer().encode(text)
    assert list(fastokens().encode(text)) == list(tokens)
    assert fastokens().count(text) == tokenizer().count(text) == len(tokens)


def test_special_tokens_are_plain_text(counter: TiktokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1


def test_lone_surrogates_are_counted(counter: TiktokenCounter) -> None:
    assert counter.count("a\ud800b") > 0


@pytest.mark.slow
@pytest.mark.parametrize("character", ["a", " ", "\n", "漢"])
def test_a_run_of_more_than_a_million_characters_is_counted(counter: TiktokenCounter, character: str) -> None:
    """The splitting pattern fails on runs of more than a million spaces."""
    assert 0 < counter.count(character * 1_100_000) <= 1_100_000


def test_many_lines_have_the_counts_of_each(counter: TiktokenCounter) -> None:
    lines = [" src/pool.py", " max_connections", " naïve_größe", " 变量2", " --flag", " x²", " HTTPServer_v2"]
    assert counter.count_lines(lines) == [counter.count(line) for line in lines]
    assert counter.count_lines(["  a//", "/b "]) == [counter.count("  a//"), counter.count("/b ")]
    assert counter.count_lines([]) == []


def test_sizes_of_names_are_the_counts_in_a_list(counter: TiktokenCounter) -> None:
    names = ["src/pool.py", "__init__", "evict_idle", "变量2"]
    for each in (counter, CharacterCounter()):
        sizes = NameSizes(each)
        sizes.count(names)
        assert [sizes[name] for name in names] == [each.count(f" {name}") for name in names]


def test_a_cached_count_is_the_same(counter: TiktokenCounter) -> None:
    texts = ["remembered", "rememberex", "remembered by its content", ""]
    first = [counter.count(text) for text in texts]
    assert [counter.count("".join(list(text))) for text in texts] == first
    text_cache.forget()
    assert [counter.count(text) for text in texts] == first


def test_splitting_a_text_barely_changes_its_count(counter: TiktokenCounter) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 5_000
    once = counter.count("The quick brown fox jumps over the lazy dog. ")
    assert counter.count(text) == pytest.approx(once * 5_000, rel=0.12)


def test_threads_share_one_vocabulary() -> None:
    counts: list[int] = []

    def count() -> None:
        counts.append(TiktokenCounter().count("a b c"))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 8


@pytest.mark.slow
def test_a_process_that_counts_much_text_changes_to_fastokens(
    counter: TiktokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizers, "_loaded", None)
    monkeypatch.setattr(tokenizers, "_MANY", 50)
    monkeypatch.setattr(tokenizers, "Fastokens", lambda _: fastokens())
    texts = [f"The plan of session {number}" for number in range(10)]
    assert [tokenizer().count(text) for text in texts] == list(map(counter.count, texts))
    assert tokenizer() is fastokens()


@pytest.mark.slow
@pytest.mark.processes
def test_a_process_forked_after_a_count_counts() -> None:
    text = "".join(f"\n line {number}" for number in range(20_000))
    expected = fastokens().count(text)
    with get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_count, [text]).get(timeout=60) == expected


def _count(text: str) -> int:
    return fastokens().count(text)


def test_a_message_counts_its_parts_and_its_overhead() -> None:
    message = Message(
        position=0,
        role=Role.ASSISTANT,
        parts=(
            Text(text="x" * 40),
            ToolCall(call_id="c", name="read", arguments="y" * 80),
            ToolResult(call_id="c", text="z" * 20, media_tokens=7),
            Opaque(kind="image", media_tokens=100),
        ),
    )
    parts = 10 + (PART_OVERHEAD + 1 + 20) + (PART_OVERHEAD + 5 + 7) + 100
    assert message_tokens(message, CharacterCounter()) == MESSAGE_OVERHEAD + parts
