"""The identity of a model call, by which sources that report the same call are matched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compaction.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIdentity:
    """A call, as one source reports it.

    `request_id` and `response_id` are unique in a project and empty if they are unknown. Otherwise a call is
    recognized by its usage and time within its session and the sessions of its sub-agents.
    """

    at: datetime
    usage: Usage | None = None
    request_id: str = ""
    response_id: str = ""
