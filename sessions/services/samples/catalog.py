"""The sample sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions.services.samples.stories import alerts, tides_with_memory
from sessions.services.samples.stories.steps import Step
from sessions.services.samples.stories.tides import TITLE

_CODER = (
    "You are a careful software engineer. Work on tidewater, a service for tide tables, in the current "
    "folder. Run the tests after each change. Older tool outputs may be shortened to one line with a handle: "
    "retrieve what you need with expand_clip. Record decisions, failed attempts and next steps with "
    "update_working_memory, so that they are not lost."
)
_REVIEWER = (
    "You review changes to tidewater. Report defects with the file and the reason. Do not change files."
)
_SUPPORT = "You answer questions of harbour staff about tide tables, briefly and without jargon."

_CLAUDE, _HAIKU, _GPT = "claude-opus-4-5-20251101", "claude-haiku-4-5", "gpt-5.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A sample session: its settings and its turns.

    `age` is the time from its start until now in hours. `parent` is the key of another story.
    """

    key: str
    title: str
    agent: str
    model: str
    age: float
    steps: Callable[[], Iterator[Step]]
    system: str = _CODER
    format: str = "anthropic"
    tags: Sequence[str] = ()
    budget_tokens: int | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    parent: str = ""


#: The main story.
MAIN = "tides"

#: Budgets are small, so that short sessions are compacted. The soft trigger is off, because it may call a
#: model.
STORIES: Sequence[Story] = (
    Story(
        key=MAIN,
        title=TITLE,
        agent="coder",
        model=_CLAUDE,
        age=5,
        tags=("bug",),
        budget_tokens=36_000,
        policy={"preset": "balanced", "soft": 0},
        steps=tides_with_memory.steps,
    ),
    Story(
        key="exploration",
        title="Find arithmetic on naive times",
        agent="explorer",
        model=_HAIKU,
        age=4.6,
        parent=MAIN,
        steps=alerts.exploring,
        policy={"preset": "balanced", "soft": 0},
    ),
    Story(
        key="alerts",
        title="Email alerts before spring tides",
        agent="coder",
        model=_CLAUDE,
        age=6 * 24 + 3,
        tags=("feature",),
        budget_tokens=24_000,
        policy={"preset": "aggressive", "soft": 0},
        steps=alerts.feature,
    ),
    Story(
        key="review",
        title="Review the import of harbour office files",
        agent="reviewer",
        model=_GPT,
        age=9 * 24 + 6,
        tags=("review",),
        format="openai",
        system=_REVIEWER,
        budget_tokens=20_000,
        policy={"preset": "masking", "soft": 0},
        steps=alerts.review,
    ),
    Story(
        key="question",
        title="Two high waters on one morning?",
        agent="support",
        model=_HAIKU,
        age=12 * 24 + 2,
        tags=("support",),
        system=_SUPPORT,
        steps=alerts.question,
        policy={"preset": "balanced", "soft": 0},
    ),
)

#: The session that is imported from a log whose client compacts its own context, and its age in hours.
LOG_TITLE, LOG_AGE = "Tide predictions, compacted by the client", 3 * 24 + 4.0

#: The number of sessions.
TOTAL = len(STORIES) + 1
