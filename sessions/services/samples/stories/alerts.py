"""Shorter sample sessions about the same fictional service: a feature, its exploration, a review, a question.

Every name in them is made up.
"""

# ruff: noqa: E501 - prose and code of a story: broken lines would be harder to read

from __future__ import annotations

from collections.abc import Iterator

from .steps import Step, bash, edit, grep, pytest, read, remember
from .tool_outputs import listing, search_hits


def exploring() -> Iterator[Step]:
    """Return the session of a sub-agent that looks for the users of naive times."""
    yield Step(
        user="List every place in tidewater that does arithmetic on a naive local time. Paths and line numbers only.",
        calls=(grep("local_time", 44), bash("ls -R src | head -200", listing(120))),
    )
    for path, sections in (
        ("src/tidewater/widgets/harbour_board.py", 14),
        ("src/tidewater/alerts/spring_tide.py", 12),
        ("src/tidewater/export/csv.py", 9),
        ("src/tidewater/api/moon.py", 10),
    ):
        yield Step(text=f"Checking {path}.", calls=(read(path, sections), grep("timedelta", 18)))
    yield Step(
        text=(
            "Arithmetic on naive local times: src/tidewater/predictor.py (apply_offset) and "
            "src/tidewater/widgets/harbour_board.py (drying time). The alerts and exports only format times."
        )
    )


def feature() -> Iterator[Step]:
    """Return the session that adds e-mail alerts of spring tides."""
    yield from _reading_the_alerts()
    yield from _adding_the_mail()
    yield from _templates()


def _reading_the_alerts() -> Iterator[Step]:
    yield Step(
        user="Harbour masters want an e-mail two days before a spring tide above 4.8 m. Use the existing mailer.",
        text="I'll read the alerts that exist and the mailer.",
        calls=(read("src/tidewater/alerts/spring_tide.py", 12), read("src/tidewater/mailer.py", 10)),
    )
    yield Step(
        text="Recording the task.",
        calls=(
            remember(
                "the task",
                ("add", "task", "E-mail harbour masters two days before a spring tide above 4.8 m."),
                ("add", "next", "Find how thresholds are configured."),
            ),
        ),
    )
    yield Step(calls=(grep("threshold", 40), read("src/tidewater/config.py", 13)))
    yield Step(
        text="And the scheduler.", calls=(read("src/tidewater/jobs/nightly.py", 14), grep("@daily", 9))
    )
    yield Step(calls=(bash("sqlite3 data/stations.db .schema", search_hits("CREATE TABLE", 30)),))


def _adding_the_mail() -> Iterator[Step]:
    yield Step(
        text="Thresholds are per station and in centimetres. I'll add the alert and its job.",
        calls=(
            edit(
                "src/tidewater/alerts/spring_tide.py",
                "class SpringTide:",
                "class SpringTideMail:\n    limit_cm = 480",
            ),
            edit("src/tidewater/jobs/nightly.py", "JOBS = [", "JOBS = [spring_tide_mails,"),
        ),
    )
    yield Step(
        calls=(pytest("tests/test_alerts.py", 17, ("test_two_days_before", "test_no_mail_below_the_limit")),)
    )
    yield Step(
        thinking="The forecast is in metres and the limit in centimetres.",
        calls=(read("src/tidewater/forecast.py", 14), grep("height", 36)),
    )
    yield Step(
        text="Heights are metres in the forecast. Recording that, because it is easy to get wrong.",
        calls=(
            remember(
                "units",
                (
                    "add",
                    "decisions",
                    "forecast.height is in metres, limits are in centimetres: convert in one place.",
                ),
                ("add", "tried", "Comparing forecast.height with 480 sent no mails: the units differ."),
                ("add", "important_files", "src/tidewater/forecast.py"),
                ("add", "next", "Convert in forecast.height_cm."),
            ),
        ),
    )
    yield Step(
        calls=(
            edit(
                "src/tidewater/forecast.py",
                "def height(",
                "def height_cm(self) -> int:\n    return round(self.height * 100)\n\ndef height(",
            ),
            pytest("tests/test_alerts.py", 19),
        ),
        compacts="before the templates",
    )


def _templates() -> Iterator[Step]:
    yield Step(
        user="Good. The mail needs a plain-text and an HTML version, in English and French.",
        calls=(
            bash("find src/tidewater/templates -name '*mail*'", listing(30)),
            read("src/tidewater/templates.py", 11),
        ),
    )
    for language in ("en", "fr"):
        yield Step(
            text=f"Writing the {language} templates.",
            calls=(
                edit(
                    f"src/tidewater/templates/{language}/spring_tide.txt", "", "{{ station }}: {{ height }}"
                ),
                edit(
                    f"src/tidewater/templates/{language}/spring_tide.html",
                    "",
                    "<p>{{ station }}: {{ height }}</p>",
                ),
                read(f"src/tidewater/templates/{language}/base.py", 9),
            ),
        )
    yield Step(calls=(pytest("tests/test_mail.py", 40, ("test_french_subject", "test_html_escapes_names")),))
    yield Step(calls=(read("src/tidewater/i18n.py", 15), grep("gettext", 30)))
    yield Step(
        calls=(
            edit("src/tidewater/i18n.py", "catalog = {}", "catalog = load('spring_tide')"),
            pytest("tests/test_mail.py", 42),
        )
    )
    yield Step(calls=(pytest("tests", 231), bash("git diff --stat", listing(11))))
    yield Step(
        text=(
            "Done: harbour masters get an e-mail two days before a spring tide above 4.8 m, as text and HTML, in "
            "English and French. The limit is per station. 231 tests pass."
        )
    )


def review() -> Iterator[Step]:
    """Return the session of a reviewer."""
    yield Step(
        user="Review the branch import/harbour-csv. Look for data loss: the harbour office edits these files by hand.",
        calls=(bash("git diff main...import/harbour-csv", search_hits("harbour_csv", 60)),),
    )
    for path, sections in (
        ("src/tidewater/loaders/harbour_csv.py", 13),
        ("src/tidewater/loaders/base.py", 12),
        ("tests/test_harbour_csv.py", 14),
        ("src/tidewater/stations.py", 12),
        ("src/tidewater/loaders/merge.py", 15),
    ):
        yield Step(text=f"Reading {path}.", calls=(read(path, sections),))
    yield Step(calls=(bash("head -60 data/harbour_office/secondary.csv", search_hits("secondary", 60)),))
    yield Step(
        text="Two rows have the same code.", calls=(grep("duplicate", 12), read("src/tidewater/errors.py", 9))
    )
    yield Step(calls=(pytest("tests/test_harbour_csv.py", 22),))
    yield Step(
        text=(
            "Two findings. A repeated station code replaces the earlier row without a message (merge.py): report it. "
            "An empty offset is read as zero, which moves the station: reject it. The rest is fine."
        )
    )


def question() -> Iterator[Step]:
    """Return the session of a support agent, without tools."""
    yield Step(
        user="The board at our harbour shows two high waters on the same morning. Is that possible?",
        text=(
            "Yes. High waters are about 12 hours and 25 minutes apart, so one shortly after midnight and one before "
            "noon can fall on the same calendar day. Which station is it, and which times does it show?"
        ),
    )
    yield Step(
        user="Port Ellery, 00:40 and 01:40.",
        text=(
            "Those two are one hour apart, so one of them is wrong. The clocks changed that night: the second entry is "
            "probably the first one, shown in the repeated hour. A fix for secondary stations was released today."
        ),
    )
    yield Step(
        user="It is gone after a restart of the board. Thanks!",
        text="Good to hear. If it appears again, please send the board's serial number and the time.",
    )
