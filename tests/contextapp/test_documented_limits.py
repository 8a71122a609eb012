"""The documentation states the limits and periods of the code."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from accounts.services import invitations, login_failures
from sessions.selectors.spending import ALERT_PERCENTAGES
from sessions.services.compactions.background import MAX_ATTEMPTS
from sessions.services.imports import jobs
from sessions.services.memory import facts
from sessions.services.sessions import retention
from sessions.services.webhooks import deliveries, transport
from sessions.services.webhooks.subscriptions import MAX_WEBHOOKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
RETRIES = deliveries.PAUSES[:-1]
LAST_RETRY = timedelta(seconds=sum(RETRIES)) / timedelta(hours=1)
FIRST_DELAY, MAX_DELAY = login_failures.FIRST_DELAY, login_failures.MAX_DELAY
FIRST_ALERTS = ", ".join(f"{share}%" for share in ALERT_PERCENTAGES[:-1])

STATED = {
    "guides/manage-a-project": [
        f"After {WORDS[login_failures.FREE_ATTEMPTS]} failed attempts",
        f"blocked for {FIRST_DELAY.seconds} s, then for twice as long",
        f"up to {MAX_DELAY // timedelta(minutes=1)} minutes",
        f"{login_failures.MAX_PER_ADDRESS} failures in an hour",
        f"The link can be used once, within {WORDS[invitations.LIFETIME.days]} days",
        f"Deletion starts {WORDS[retention.NOTICE.days]} days after",
    ],
    "guides/track-costs": [f"{FIRST_ALERTS} and {ALERT_PERCENTAGES[-1]}%, once per period"],
    "concepts/working-memory": [
        f"for {facts.LIFETIME.days} days, or until the date",
        f"were not reviewed for {facts.UNDECIDED.days} days",
    ],
    "operations/background-work": [f"attempted at most {WORDS[MAX_ATTEMPTS]} times"],
    "reference/api": [
        f"up to {WORDS[len(deliveries.PAUSES)]} attempts over {LAST_RETRY:.1f} hours",
        f"without a 2xx response within {WORDS[int(transport.TIMEOUT)]} seconds",
        f"Deliveries are listed for {deliveries.KEPT.days} days",
        f"An import is listed for {jobs.KEPT.days} days",
        f"| webhooks per project | {MAX_WEBHOOKS} |",
    ],
}


@pytest.mark.parametrize("page", STATED)
def test_limits_are_documented(page: str) -> None:
    text = " ".join((DOCS / f"{page}.md").read_text().split())
    assert [phrase for phrase in STATED[page] if phrase not in text] == []
    assert timedelta(hours=1) == login_failures.WINDOW
