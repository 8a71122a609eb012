"""The main sample session: the story of `tides` by an agent that keeps a working memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .steps import Call, Step, expand, remember
from .tides import logged_steps

_CACHE_KEY = "Does the cache key change? The edge nodes share it."

#: The step before which the user pauses, so that the provider's cache expires.
_LUNCH = 23


def steps() -> Iterator[Step]:
    """Return the session without the client's compaction."""
    own = [step for step in logged_steps() if not step.compacted_to]
    for index, step in enumerate(own):
        yield replace(step, pause=47) if index == _LUNCH else step
        if index in _AFTER:
            text, call = _AFTER[index]
            yield Step(text=text, calls=(call,))


#: Steps to insert after the step with this number.
_AFTER: Mapping[int, tuple[str, Call]] = {
    0: (
        "I'll note the task first.",
        remember(
            "the task",
            (
                "add",
                "task",
                "Secondary stations show high water one hour late since Sunday: fix it, with a test.",
            ),
            ("add", "decisions", "The public JSON of /tides does not change."),
            ("add", "next", "Find where secondary offsets are applied."),
        ),
    ),
    8: (
        "The cause is found, so I record it before I change anything.",
        remember(
            "the cause",
            ("add", "important_files", "src/tidewater/predictor.py"),
            (
                "add",
                "decisions",
                "Add the offset to the instant, not to the naive local time (apply_offset).",
            ),
            ("add", "next", "Write a failing test for a secondary station after the clocks went back."),
        ),
    ),
    12: (
        "One attempt failed; I'll remember why.",
        remember(
            "a failed edit", ("add", "tried", "Replacing attach_zone(...) failed: there is no such line.")
        ),
    ),
    16: (
        "Before I go on, the open point.",
        remember(
            "the cache",
            ("add", "important_files", "src/tidewater/cache.py"),
            ("add", "open_questions", _CACHE_KEY),
            ("add", "next", "Keep the cache key byte for byte."),
        ),
    ),
    20: (
        "Which modules did the listing of the source contain? I only need the paths of the package.",
        expand("git log", "tidewater"),
    ),
    29: (
        "The key is fixed.",
        remember(
            "the cache key",
            ("resolve", "open_questions", _CACHE_KEY),
            (
                "add",
                "decisions",
                "cache_key() formats the old local text explicitly, so edge caches stay warm.",
            ),
            ("add", "important_files", "src/tidewater/edge/warmup.py"),
            ("add", "next", "Look for other users of the naive time."),
        ),
    ),
    35: ("I need some lines of the search for local_time again.", expand("local_time", "board|alert")),
    43: (
        "Three new tests pass.",
        remember("tests", ("add", "next", "Compare the answers of /tides with the release.")),
    ),
}
