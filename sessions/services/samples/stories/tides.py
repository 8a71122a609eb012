"""The story of the main sample session: a fictional tide table service shows wrong times after a clock change.

Every name in it is made up.
"""

# ruff: noqa: E501 - prose and code of a story: broken lines would be harder to read

from __future__ import annotations

from collections.abc import Iterator

from .steps import Step, bash, edit, grep, pytest, read, step
from .tides_continued import steps_after_the_recap
from .tool_outputs import listing, search_hits

TITLE = "Fix tide predictions at secondary ports"


def logged_steps() -> Iterator[Step]:
    """Return the session as recorded by a client that compacts its own context."""
    yield from _finding_the_cause()
    yield from _first_attempt()
    yield from _other_tests_fail()
    yield Step(compacted_to=RECAP)
    yield from steps_after_the_recap()


def _finding_the_cause() -> Iterator[Step]:
    yield step(
        bash("git log --oneline | head -20 && ls -R src | head -120", listing(90)),
        grep("secondary_offset", 28),
        user="High water at Port Ellery is shown one hour late since Sunday, but only for stations with a "
        "secondary offset. Customers in the fishing co-op noticed it. Find out why and fix it, with a test. "
        "Do not change the public JSON of /tides.",
        thinking="Sunday was the end of daylight saving time. Only secondary stations: their times are the reference "
        "station's plus an offset. So the offset is probably added to a local time. Look at the layout first.",
        text="I'll look at the layout and at where secondary offsets are applied.",
    )
    yield step(
        read("src/tidewater/predictor.py", 15),
        read("src/tidewater/stations.py", 12),
        thinking="Three places use it: predictor, stations, and the cache key. Reading the predictor.",
    )
    yield step(
        read("src/tidewater/clock.py", 9),
        text="`apply_offset` works on a naive local time. I want to see where the clock comes from.",
    )
    yield step(grep("to_local", 34))
    yield step(
        read("src/tidewater/api/tides.py", 14),
        read("tests/test_predictor.py", 13),
        thinking="The API converts once more. If predictor returns local and the API converts, we shift twice.",
    )
    yield step(
        pytest("tests", 212),
        text="The existing tests only use stations without an offset. Running them for a baseline.",
    )
    yield step(
        read("src/tidewater/loaders/harbour_csv.py", 13),
        user="Note that station data comes from the harbour office as CSV, and they enter the offsets manually.",
        thinking="Offsets may be minutes or h:mm. Check the loader.",
    )
    yield step(bash("head -40 data/harbour_office/secondary.csv", search_hits("Port Ellery", 40)))
    yield step(
        read("tests/conftest.py", 8),
        text="The loader is fine: offsets are whole minutes. The cause is in `predictor.apply_offset`: it adds the "
        "offset to a *local, naive* time and attaches the zone afterwards, so in the repeated hour and after "
        "it the fold is lost. I'll write the failing test first.",
    )


def _first_attempt() -> Iterator[Step]:
    yield step(
        edit(
            "tests/test_predictor.py",
            "def test_primary_station_is_unchanged():",
            "def test_secondary_station_after_the_clocks_went_back():\n    station = secondary(offset_minutes=25)\n"
            "    tide = predict(station, at('2031-10-26T03:10Z'))\n    assert tide.local == '2031-10-26 03:35 +00:00'\n"
            "\n\ndef test_primary_station_is_unchanged():",
        )
    )
    yield step(pytest("tests/test_predictor.py", 30, ("test_secondary_station_after_the_clocks_went_back",)))
    yield step(
        edit(
            "src/tidewater/predictor.py",
            "    return attach_zone(reference.local + offset, zone)",
            "    return to_local(reference.instant + offset, zone)",
            output="<tool_use_error>String to replace not found in file.</tool_use_error>",
            is_error=True,
        ),
        text="It fails as reported, one hour late. Now the fix.",
    )
    yield step(
        read("src/tidewater/predictor.py", 15),
        thinking="The line differs. Read the function again rather than guess.",
    )
    yield step(
        edit(
            "src/tidewater/predictor.py",
            "    moved = reference.local_time + timedelta(minutes=offset)",
            "    moved = (reference.instant + timedelta(minutes=offset)).astimezone(zone)",
        )
    )
    yield step(
        pytest(
            "tests",
            203,
            ("test_cache_key_is_stable", "test_week_view", "test_ics_export", "test_slack_water"),
        )
    )


def _other_tests_fail() -> Iterator[Step]:
    yield step(
        read("src/tidewater/cache.py", 11),
        grep("cache_key", 22),
        thinking="The cache key is built from the local time's text, so it changed. The other three may be the same.",
        text="The new test passes, but four others fail: the cache key is built from the local time.",
    )
    yield step(read("src/tidewater/views/week.py", 13), read("src/tidewater/export/ics.py", 12))
    yield step(bash("git diff", search_hits("instant", 30)))
    yield step(
        edit("src/tidewater/views/week.py", "day = tide.local.date()", "day = local_day(tide.instant, zone)"),
        edit(
            "src/tidewater/export/ics.py",
            "DTSTART:{tide.local:%Y%m%dT%H%M%S}",
            "DTSTART:{tide.instant:%Y%m%dT%H%M%SZ}",
        ),
        text="The week view groups by the naive date, so an aware time lands on another day. Trying a helper.",
    )
    yield step(pytest("tests", 209, ("test_cache_key_is_stable",)))
    yield step(
        grep("legacy_local_text", 6),
        read("src/tidewater/edge/warmup.py", 12),
        user="Careful with the cache key: the edge nodes share it. If it changes, all of them go cold at once.",
        thinking="So the key must stay byte for byte. Build it from the old local text explicitly.",
    )


RECAP = (
    "This session is being continued from a previous conversation that ran out of context.\n\n"
    "Task: high water at secondary stations is one hour late since the clocks went back. Fix with a test; the "
    "JSON of /tides must not change.\n\n"
    "Decisions: the offset is added to the instant, not to the local time (src/tidewater/predictor.py, "
    "apply_offset). The week view groups by local_day(instant, zone). The ICS export writes UTC.\n\n"
    "Facts: 212 tests at the start. Edge nodes share the cache key, so it must stay byte for byte the same. "
    "Offsets in data/harbour_office/secondary.csv are whole minutes.\n\n"
    "Tried: replacing attach_zone(...) failed, there is no such line.\n\n"
    "Open: test_cache_key_is_stable fails. src/tidewater/edge/warmup.py computes the same key on its own.\n\n"
    "Next: build the key from the old local text in one place, used by cache.py and warmup.py."
)
