"""Titles of sessions whose log contains none, derived from the first message."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importers.values import TITLE_LENGTH, request_of, title_of

TITLES = [
    ("\n\n  Fix   the\tlogin \nIt fails.", "Fix the login"),
    ("Implement the following plan:\n\n# Plan: hooks in a chain\n\n## Context", "Plan: hooks in a chain"),
    (
        (
            "<uploaded_files>\n/workspace/repo\n</uploaded_files>\nHere is a repository. Consider the "
            "following description:\n\n<description>\nminversion fails\nSince 1.4 it does.\n</description>"
        ),
        "minversion fails",
    ),
    ("<task>\nFix the login\n</task>", "Fix the login"),
    ("<task>Fix the login</task>", "<task>Fix the login</task>"),
    ("<a>\n1\n</a>\n\n<b>\n2\n</b>\nAnd now?", "And now?"),
    ("<uploaded_files>", "<uploaded_files>"),
    ("Do the following:", "Do the following:"),
    ("Why does this happen:\n$ make", "Why does this happen:"),
    ("# Heading", "Heading"),
    ("#5 is open again", "#5 is open again"),
    ("\x00\n", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "title"), TITLES)
def test_a_title_is_the_first_meaningful_line(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("messages", "chosen"),
    [
        (["/mode", "Fix the login page"], "Fix the login page"),
        (
            ["hi", "brainstorm:", "Why does the pool block?", "And the cache, too?"],
            "Why does the pool block?",
        ),
        (["hi", "ok"], "hi"),
        (["Fix the login page", "Now fix the logout page"], "Fix the login page"),
        (["/src/app.py fails on start"], "/src/app.py fails on start"),
    ],
)
def test_the_title_comes_from_the_first_message_that_states_a_task(messages: list[str], chosen: str) -> None:
    assert reduce(request_of, messages, "") == chosen


@given(st.text(alphabet="<>/ab#: \nfollowing"))
def test_a_title_is_one_line_of_limited_length(text: str) -> None:
    title = title_of(text * 5)
    assert bool(title) == bool(text.split())
    assert len(title) <= TITLE_LENGTH
    assert title.splitlines() == ([title] if title else [])


def test_unclosed_tags_take_linear_time() -> None:
    """A backtracking pattern would take exponential time."""
    assert title_of("<a>" * 2_000).startswith("<a><a>")
    assert title_of("<a></a>" * 500 + "following " * 1_000).startswith("following following")
