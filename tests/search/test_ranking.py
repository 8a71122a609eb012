"""Which message of a few is the best for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.messages import Message, Role, Text
from search.documents import document_of
from search.query import query_parse
from search.ranking import LoadedSegment, frequencies, scores
from search.segments import header_of
from search.snippets import contains_phrase, snippet_of


def ranked(query: str, *texts: str, recency: float = 1.0) -> Sequence[int]:
    """The places of the texts that match, best first."""
    found = scored(query, texts, recency=recency)
    return sorted(found, key=lambda place: -found[place])


def scored(
    query: str, texts: Sequence[str], *, recency: float = 1.0, least: float = 0.0
) -> Mapping[int, float]:
    messages = [
        Message(position=at, role=Role.USER, parts=(Text(text=text),)) for at, text in enumerate(texts)
    ]
    documents = [document_of(message, {}, is_error=False) for message in messages]
    parsed = query_parse(query)
    postings = {}
    for term in parsed.terms:
        places = [at for at, document in enumerate(documents) if term.term in document.counts]
        if places:
            counts = bytes(documents[at].counts[term.term] for at in places)
            postings[term.key] = bytes(places), counts
    frequency = frequencies(
        parsed, {key: len(places) for key, (places, _) in postings.items()}, len(documents)
    )
    segment = LoadedSegment(header=header_of(documents), postings=postings, recency=recency)
    return scores(segment, parsed, frequency, least=least)


FILLER = "Something else entirely, about the weather and the garden."


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("rare common", ("common thing", "common again", "rare thing", "common word")),
        ("pool timeout", ("pool here", "a timeout of the pool", "timeout there")),
        ("max_pool_size", ("max size of the pool, pool size max", "set maxPoolSize", "set max_pool_size")),
        ("src/db/pool.py", ("pool and db", "see src/db/pool.py", "see pool.py")),
        ("deploy", ("deploy " + "with many other words " * 60, "deploy now", FILLER)),
    ],
)
def test_the_best_message_comes_first(query: str, texts: tuple[str, ...]) -> None:
    best = {"rare common": 2, "pool timeout": 1, "max_pool_size": 2, "src/db/pool.py": 1, "deploy": 1}
    assert ranked(query, *texts)[0] == best[query]


def test_the_answer_to_a_question_is_found_with_it() -> None:
    texts = [FILLER, "Which car did Ada buy last week?", "A blue one, secondhand.", FILLER, FILLER]
    assert ranked("Which car did Ada buy in the week?", *texts)[:2] == [1, 2]


def test_a_message_with_all_words_comes_before_one_that_repeats_a_few() -> None:
    repeated = "parser parser parser cache cache cache"
    assert (
        ranked("parser cache encoding", repeated, "The parser, the cache and the encoding.", FILLER)[0] == 1
    )


WORDS = st.lists(
    st.sampled_from(["pool", "timeout", "max_pool_size", "cache", "parser", FILLER]), min_size=1, max_size=8
)


@given(st.lists(WORDS, min_size=1, max_size=12), WORDS, st.data())
def test_a_lower_limit_changes_no_score_above_it(
    texts: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    joined = [" ".join(text) for text in texts]
    every = scored(" ".join(query), joined)
    least = data.draw(st.sampled_from([*every.values(), 1.0]))
    limited = scored(" ".join(query), joined, least=least)
    assert {place: score for place, score in limited.items() if score >= least} == {
        place: score for place, score in every.items() if score >= least
    }


def test_a_short_query_finds_only_messages_with_its_words() -> None:
    assert ranked("car", FILLER, "Which car?", "A blue one.") == [1]


def test_a_snippet_shows_the_words_close_together() -> None:
    text = "pool " + "x " * 400 + "the pool size is 5" + " y" * 400
    query = query_parse("pool size")
    frequency = {"pool": 1.0, "size": 2.0}
    snippet = snippet_of(text, query, frequency)
    assert "pool size is 5" in snippet.text
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["pool", "size"]
    assert snippet.coverage == 1.0


def test_a_snippet_has_whole_words() -> None:
    for length in range(1, 60):
        word = "w" * length
        text = f"{word} " * 100 + "needle" + f" {word}" * 100
        snippet = snippet_of(text, query_parse("needle"), {"needle": 1.0})
        [(start, end)] = snippet.marks
        assert snippet.text[start:end] == "needle"
        assert set(snippet.text.split(" ")) <= {word, "needle"}
        assert len(snippet.text) > 150


def test_a_snippet_of_a_text_without_spaces_is_cut_anywhere() -> None:
    snippet = snippet_of("a/" * 200 + "needle" + "/a" * 200, query_parse("needle"), {"needle": 1.0})
    [(start, end)] = snippet.marks
    assert snippet.text[start:end] == "needle"
    assert (start, len(snippet.text)) == (60, 240)


def test_a_snippet_marks_an_identifier_as_a_whole() -> None:
    snippet = snippet_of(
        "Set MAX_POOL_SIZE, then the pool.", query_parse("max_pool_size"), {"max_pool_size": 1.0}
    )
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["MAX_POOL_SIZE", "pool"]


def test_a_phrase_ignores_case_and_line_breaks() -> None:
    assert contains_phrase("The Quick\n  brown fox", "quick brown")
    assert not contains_phrase("quick, brown", "quick brown")


@pytest.mark.parametrize(
    "word", ["keys", "queries", "relational", "hoping", "tried", "agencies", "maxPoolSize", "caf\u00e9s"]
)
def test_every_form_of_a_word_is_marked(word: str) -> None:
    query = query_parse(word.removeprefix("max"))
    snippet = snippet_of(f"some text, {word} and more", query, dict.fromkeys(("x",), 1.0))
    assert (11, 11 + len(word)) in snippet.marks
