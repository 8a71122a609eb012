"""The main sample session: the story of `tides` by an agent that keeps a working memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .steps import Step, expand, remember, step
from .tides import logged_steps

_CACHE_KEY = "Does the cache key change? The edge nodes share it."

#: The step before which the user pauses, so that the provider's cache expires.
_LUNCH = 23


def steps() -> Iterator[Step]:
    """Return the session without the client's compaction."""
    own = (each for each in logged_steps() if not each.compacted_to)
    for index, each in enumerate(own):
        yield replace(each, pause=47) if index == _LUNCH else each
        if index in _AFTER:
            yield _AFTER[index]


#: Steps to insert after the step with this number.
_AFTER: Mapping[int, Step] = {
    0: step(
        remember(
            "the task",
            task="Secondary stations show high water one hour late since Sunday: fix it, with a test.",
            decisions="The public JSON of /tides does not change.",
            next="Find where secondary offsets are applied.",
        ),
        text="I'll note the task first.",
    ),
    8: step(
        remember(
            "the cause",
            important_files="src/tidewater/predictor.py",
            decisions="Add the offset to the instant, not to the naive local time (apply_offset).",
            next="Write a failing test for a secondary station after the clocks went back.",
        ),
        text="The cause is found, so I record it before I change anything.",
    ),
    12: step(
        remember("a failed edit", tried="Replacing attach_zone(...) failed: there is no such line."),
        text="One attempt failed; I'll remember why.",
    ),
    16: step(
        remember(
            "the cache",
            important_files="src/tidewater/cache.py",
            open_questions=_CACHE_KEY,
            next="Keep the cache key byte for byte.",
        ),
        text="Before I go on, the open point.",
    ),
    20: step(
        expand("git log", "tidewater"),
        text="Which modules did the listing of the source contain? I only need the paths of the package.",
    ),
    29: step(
        remember(
            "the cache key",
            resolved=("open_questions", _CACHE_KEY),
            decisions="cache_key() formats the old local text explicitly, so edge caches stay warm.",
            important_files="src/tidewater/edge/warmup.py",
            next="Look for other users of the naive time.",
        ),
        text="The key is fixed.",
    ),
    35: step(
        expand("local_time", "board|alert"), text="I need some lines of the search for local_time again."
    ),
    43: step(
        remember("tests", next="Compare the answers of /tides with the release."),
        text="Three new tests pass.",
    ),
}
