"""Shorter sample sessions about the same fictional service: a feature, its exploration, a review, a question.

Every name in them is made up.
"""

# ruff: noqa: E501 - prose and code of a story: broken lines would be harder to read

from __future__ import annotations

from collections.abc import Iterator

from .steps import Step, bash, edit, grep, pytest, read, remember, step
from .tool_outputs import listing, search_hits


def exploring() -> Iterator[Step]:
    """Return the session of a sub-agent that looks for the users of naive times."""
    yield step(
        grep("local_time", 44),
        bash("ls -R src | head -200", listing(120)),
        user="List every place in tidewater that does arithmetic on a naive local time. Paths and line numbers only.",
    )
    for path, sections in (
        ("src/tidewater/widgets/harbour_board.py", 14),
        ("src/tidewater/alerts/spring_tide.py", 12),
        ("src/tidewater/export/csv.py", 9),
        ("src/tidewater/api/moon.py", 10),
    ):
        yield step(read(path, sections), grep("timedelta", 18), text=f"Checking {path}.")
    yield step(
        text="Arithmetic on naive local times: src/tidewater/predictor.py (apply_offset) and "
        "src/tidewater/widgets/harbour_board.py (drying time). The alerts and exports only format times."
    )


def feature() -> Iterator[Step]:
    """Return the session that adds e-mail alerts of spring tides."""
    yield from _reading_the_alerts()
    yield from _adding_the_mail()
    yield from _templates()


def _reading_the_alerts() -> Iterator[Step]:
    yield step(
        read("src/tidewater/alerts/spring_tide.py", 12),
        read("src/tidewater/mailer.py", 10),
        user="Harbour masters want an e-mail two days before a spring tide above 4.8 m. Use the existing mailer.",
        text="I'll read the alerts that exist and the mailer.",
    )
    yield step(
        remember(
            "the task",
            task="E-mail harbour masters two days before a spring tide above 4.8 m.",
            next="Find how thresholds are configured.",
        ),
        text="Recording the task.",
    )
    yield step(grep("threshold", 40), read("src/tidewater/config.py", 13))
    yield step(read("src/tidewater/jobs/nightly.py", 14), grep("@daily", 9), text="And the scheduler.")
    yield step(bash("sqlite3 data/stations.db .schema", search_hits("CREATE TABLE", 30)))


def _adding_the_mail() -> Iterator[Step]:
    yield step(
        edit(
            "src/tidewater/alerts/spring_tide.py",
            "class SpringTide:",
            "class SpringTideMail:\n    limit_cm = 480",
        ),
        edit("src/tidewater/jobs/nightly.py", "JOBS = [", "JOBS = [spring_tide_mails,"),
        text="Thresholds are per station and in centimetres. I'll add the alert and its job.",
    )
    yield step(pytest("tests/test_alerts.py", 17, ("test_two_days_before", "test_no_mail_below_the_limit")))
    yield step(
        read("src/tidewater/forecast.py", 14),
        grep("height", 36),
        thinking="The forecast is in metres and the limit in centimetres.",
    )
    yield step(
        remember(
            "units",
            decisions="forecast.height is in metres, limits are in centimetres: convert in one place.",
            tried="Comparing forecast.height with 480 sent no mails: the units differ.",
            important_files="src/tidewater/forecast.py",
            next="Convert in forecast.height_cm.",
        ),
        text="Heights are metres in the forecast. Recording that, because it is easy to get wrong.",
    )
    yield step(
        edit(
            "src/tidewater/forecast.py",
            "def height(",
            "def height_cm(self) -> int:\n    return round(self.height * 100)\n\ndef height(",
        ),
        pytest("tests/test_alerts.py", 19),
        compacts="before the templates",
    )


def _templates() -> Iterator[Step]:
    yield step(
        bash("find src/tidewater/templates -name '*mail*'", listing(30)),
        read("src/tidewater/templates.py", 11),
        user="Good. The mail needs a plain-text and an HTML version, in English and French.",
    )
    for language in ("en", "fr"):
        yield step(
            edit(f"src/tidewater/templates/{language}/spring_tide.txt", "", "{{ station }}: {{ height }}"),
            edit(
                f"src/tidewater/templates/{language}/spring_tide.html",
                "",
                "<p>{{ station }}: {{ height }}</p>",
            ),
            read(f"src/tidewater/templates/{language}/base.py", 9),
            text=f"Writing the {language} templates.",
        )
    yield step(pytest("tests/test_mail.py", 40, ("test_french_subject", "test_html_escapes_names")))
    yield step(read("src/tidewater/i18n.py", 15), grep("gettext", 30))
    yield step(
        edit("src/tidewater/i18n.py", "catalog = {}", "catalog = load('spring_tide')"),
        pytest("tests/test_mail.py", 42),
    )
    yield step(pytest("tests", 231), bash("git diff --stat", listing(11)))
    yield step(
        text="Done: harbour masters get an e-mail two days before a spring tide above 4.8 m, as text and HTML, in "
        "English and French. The limit is per station. 231 tests pass."
    )


def review() -> Iterator[Step]:
    """Return the session of a reviewer."""
    yield step(
        bash("git diff main...import/harbour-csv", search_hits("harbour_csv", 60)),
        user="Review the branch import/harbour-csv. Look for data loss: the harbour office edits these files by hand.",
    )
    for path, sections in (
        ("src/tidewater/loaders/harbour_csv.py", 13),
        ("src/tidewater/loaders/base.py", 12),
        ("tests/test_harbour_csv.py", 14),
        ("src/tidewater/stations.py", 12),
        ("src/tidewater/loaders/merge.py", 15),
    ):
        yield step(read(path, sections), text=f"Reading {path}.")
    yield step(bash("head -60 data/harbour_office/secondary.csv", search_hits("secondary", 60)))
    yield step(grep("duplicate", 12), read("src/tidewater/errors.py", 9), text="Two rows have the same code.")
    yield step(pytest("tests/test_harbour_csv.py", 22))
    yield step(
        text="Two findings. A repeated station code replaces the earlier row without a message (merge.py): report it. "
        "An empty offset is read as zero, which moves the station: reject it. The rest is fine."
    )


def question() -> Iterator[Step]:
    """Return the session of a support agent, without tools."""
    yield step(
        user="The board at our harbour shows two high waters on the same morning. Is that possible?",
        text="Yes. High waters are about 12 hours and 25 minutes apart, so one shortly after midnight and one before "
        "noon can fall on the same calendar day. Which station is it, and which times does it show?",
    )
    yield step(
        user="Port Ellery, 00:40 and 01:40.",
        text="Those two are one hour apart, so one of them is wrong. The clocks changed that night: the second entry is "
        "probably the first one, shown in the repeated hour. A fix for secondary stations was released today.",
    )
    yield step(
        user="It is gone after a restart of the board. Thanks!",
        text="Good to hear. If it appears again, please send the board's serial number and the time.",
    )
