"""The second half of the story in `tides`: the client has replaced its history with a recap.

Every name in it is made up.
"""

# ruff: noqa: E501 - prose and code of a story: broken lines would be harder to read

from __future__ import annotations

from collections.abc import Iterator

from .steps import Step, bash, edit, grep, pytest, read, step
from .tool_outputs import listing, search_hits, test_report


def steps_after_the_recap() -> Iterator[Step]:
    """Return the steps from the recap to the end."""
    yield from _second_attempt()
    yield from _other_users()
    yield from _missing_tests()
    yield from _comparing_with_the_release()


def _second_attempt() -> Iterator[Step]:
    yield step(
        read("src/tidewater/cache.py", 11),
        read("src/tidewater/edge/warmup.py", 12),
        thinking="Reading the cache module again, because the summary does not contain its code.",
    )
    yield step(
        edit(
            "src/tidewater/cache.py",
            'key = f"{station.code}:{tide.local_time}"',
            "key = cache_key(station, tide)",
        ),
        edit("src/tidewater/edge/warmup.py", 'f"{code}:{local}"', "cache_key(station, tide)"),
        text="Both build the key inline. I'll move it into one function and keep its text unchanged.",
    )
    yield step(pytest("tests/test_cache.py", 17, ("test_cache_key_is_stable",)))
    yield step(
        bash(
            'python -c "from tidewater.cache import cache_key; print(cache_key.__doc__)"',
            'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
            "ModuleNotFoundError: No module named 'tidewater'",
            is_error=True,
        ),
        thinking="The old text had no offset at its end. Format explicitly.",
    )
    yield step(
        edit("src/tidewater/cache.py", "{tide.local}", "{tide.local:%Y-%m-%d %H:%M}"),
        pytest("tests/test_cache.py", 18),
    )


def _other_users() -> Iterator[Step]:
    yield step(pytest("tests", 213))
    yield step(
        grep("local_time", 31),
        text="All 213 pass. Looking for other users of the naive time before I call it done.",
    )
    for path, sections in (
        ("src/tidewater/api/moon.py", 10),
        ("src/tidewater/alerts/spring_tide.py", 12),
        ("src/tidewater/widgets/harbour_board.py", 14),
        ("src/tidewater/export/csv.py", 9),
    ):
        yield step(read(path, sections))
    yield step(
        edit("src/tidewater/widgets/harbour_board.py", "board.local_time + drying", "board.instant + drying"),
        pytest("tests/test_widgets.py", 24),
        text="The harbour board has the same bug: it adds the drying time to a local time.",
    )


def _missing_tests() -> Iterator[Step]:
    yield step(
        read("tests/test_widgets.py", 11),
        user="Good find. Please add a test for the board too, and one for the hour that happens twice.",
    )
    yield step(
        edit("tests/test_widgets.py", "def test_board_title():", "def test_board_in_the_repeated_hour():")
    )
    yield step(pytest("tests/test_widgets.py", 24, ("test_board_in_the_repeated_hour",)))
    yield step(
        edit("tests/test_widgets.py", "fold=0", "fold=1"),
        pytest("tests/test_widgets.py", 25),
        thinking="The expectation is wrong, not the code: fold=1 is the later one.",
    )
    yield step(read("tests/test_predictor.py", 14))
    yield step(
        edit("tests/test_predictor.py", "# repeated hour", "def test_both_passes_of_the_repeated_hour():")
    )
    yield step(pytest("tests", 215))
    yield step(
        bash("ruff check . && mypy src", "All checks passed!\nSuccess: no issues found in 61 source files")
    )
    yield step(bash("git diff --stat", listing(9)))


def _comparing_with_the_release() -> Iterator[Step]:
    yield step(
        bash("python tools/compare_release.py --stations primary --days 30", test_report("compare", 30, ())),
        user="Does /tides still answer the same bytes for primary stations? Compare with the release.",
    )
    yield step(
        bash("python tools/compare_release.py --stations secondary --days 30", search_hits("differs", 36))
    )
    yield step(
        bash("git add -A && git commit -m 'Add station offsets to instants, not to local times'", listing(6)),
        thinking="Only times after the change of clocks differ, by exactly one hour. That is the bug itself.",
        text="Primary stations answer the same bytes. Secondary stations differ only after the clocks went back, by "
        "exactly 60 minutes, which is the reported bug. The format of the JSON is unchanged.",
    )
    yield step(
        text="Done. The offset of a secondary station was added to a local time without a zone, which goes wrong "
        "once the clocks change. It is now added to the instant. The harbour board had the same bug. Three "
        "new tests cover it, 215 pass, and the cache key is byte for byte the same, so the edge caches stay warm."
    )
