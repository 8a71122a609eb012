"""What the index stores of a text, and what a query looks up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.query import MOST_GROUPS, query_parse
from search.terms import GIANT, MAX_COUNT, MAX_TERM, analyze, words


def matched(query: str, text: str) -> set[str]:
    """The terms of a query that a text has."""
    return {term.term for term in query_parse(query).terms} & set(analyze(text).counts)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("connections", "The connection was closed."),
        ("failing tests", "One test failed."),
        ("Why did we decide that?", "We decided to keep it."),
        ("pool.py", "Edited src/db/pool.py"),
        ("src/db/pool.py", "see pool.py"),
        ("max_pool_size", "maxPoolSize = 3"),
        ("maxPoolSize", "max_pool_size = 3"),
        ("max-pool-size", "max_pool_size = 3"),
        ("pool", "maxPoolSize = 3"),
        ("HTTPServer", "the http server"),
        ("strasse", "Straße"),
        ("cafe", "Café"),
        ("Übersicht", "U\u0308bersicht of the parts"),
        ("U\u0308bersicht.md", "docs/Übersicht.md"),
        ("ガイド", "カ\u3099イト\u3099"),
        ("हिन्दी", "हिन्दी में खोज"),
        ("検索", "全文検索の実装"),
        ("поиск", "Поиск по тексту"),
        ("4f2a9c1", "commit 4f2a9c1"),
        ("ada@example.com", "Write to ada@example.com."),
        ("8472", "order 8472"),
        ("1.25.3", "upgraded to 1.25.3"),
    ],
)
def test_a_query_finds_other_forms_of_its_words(query: str, text: str) -> None:
    assert matched(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("what is the", "the answer is this"),
        ("pool", "tool"),
        ("मन", "में"),
        ("a/b", "a b"),
        ("", "text"),
        ("_-.", "_-."),
    ],
)
def test_function_words_and_punctuation_find_nothing(query: str, text: str) -> None:
    assert not matched(query, text)


def test_the_exact_form_of_an_identifier_comes_first() -> None:
    [group] = query_parse("max_pool_size").groups
    assert [term.term for term in group.names] == ["max_pool_size", "maxpoolsize"]
    assert [term.term for term in group.words] == ["max", "pool", "size"]
    weights = [term.weight for term in group.terms]
    assert weights == sorted(weights, reverse=True)


def test_words_count_and_giant_texts_count_distinct_terms() -> None:
    assert analyze("pool pools POOL").counts == {"pool": 3}
    assert analyze("word " * MAX_COUNT * 2).counts == {"word": MAX_COUNT}
    giant = analyze("word " * GIANT)
    assert giant.counts == {"word": 1}
    assert giant.length == GIANT


def test_a_phrase_requires_only_terms_that_are_looked_up() -> None:
    query = query_parse('"' + " ".join(f"word{number}" for number in range(MOST_GROUPS + 6)) + '"')
    assert len(query.required) == MOST_GROUPS
    assert set(query.required) == {term.term for term in query.terms}


@pytest.mark.slow
def test_a_long_query_looks_up_few_terms() -> None:
    many = range(10_000)
    for form in ("w{}", "-w{}", '"w{} x"', '-"w{} x"', "src/f{}.py", "-src/f{}.py"):
        query = query_parse(" ".join(form.format(number) for number in many), is_typing=True)
        parts = (query.groups, query.phrases, query.excluded, query.excluded_phrases)
        assert 0 < max(map(len, parts)) <= MOST_GROUPS, form


def test_a_query_has_phrases_exclusions_and_a_prefix() -> None:
    query = query_parse('pool "two words" -slow -"not this" conn', is_typing=True)
    assert query.phrases == ("two words",)
    assert query.excluded_phrases == ("not this",)
    assert [group.text for group in query.excluded] == ["slow"]
    assert query.groups[-1].words[-1].is_prefix
    assert not any(term.is_prefix for term in query_parse("conn ", is_typing=True).terms)


@given(st.text(max_size=200))
def test_every_word_of_a_text_finds_it(text: str) -> None:
    counts = analyze(text).counts
    assert all(word in counts for word in words(text))
    assert all(0 < len(term) <= MAX_TERM or len(term) <= 4 * MAX_TERM for term in counts)
    assert all(1 <= count <= MAX_COUNT for count in counts.values())


@given(st.text(max_size=100), st.booleans())
def test_any_text_is_a_query(text: str, is_typing: bool) -> None:
    query = query_parse(text, is_typing=is_typing)
    assert all(term.term for term in query.terms)
    assert all("\n" not in term.term for term in query.terms)
