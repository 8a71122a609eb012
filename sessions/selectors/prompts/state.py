"""The state of a session from which its prompt is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import namedtuple_row

from accounts.selectors import KEY_IS_VALID
from compaction.capabilities import capabilities_of
from compaction.continuation import Continuation
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from sessions.selectors.prompts.cache import PromptVersion
from sessions.selectors.prompts.outlines import outline_unpack
from sessions.selectors.token_budgets import budget_tokens, calibration_of
from sessions.store import bodies
from sessions.store.continuation_columns import continuation_of
from sessions.store.edit_texts import TEXTS
from sessions.store.postgres import execute
from sessions.store.prompt_bytes import RequestParts
from sessions.store.prompt_snapshots import PromptOutline


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptState:
    """The state of a session from which its prompt is built."""

    id: UUID
    version: str  #: of the session's row
    server_start: str  #: when Postgres started, because a restored database uses versions again
    format: str | None
    model: str
    turn_count: int
    message_count: int
    context: TokenBreakdown
    shown: TokenBreakdown
    snapshot_end: int
    context_start: int
    continuation: Continuation
    calibration: Calibration
    own_budget: int | None
    context_window: int | None
    edits_revision: int
    served_turn: int | None  #: the turn after which the prompt was fetched last
    served_revision: int | None
    compaction_count: int
    omitted_count: int
    preamble_version: int
    system: bytes | None
    tools: bytes | None
    snapshot: Callable[[], PromptOutline]  #: unpacks it
    policy: Mapping[str, Any]

    @classmethod
    def from_row(
        cls, row: Any, *, system: bytes | None, tools: bytes | None, snapshot: Callable[[], PromptOutline]
    ) -> PromptState:
        """Build the state from a row with `SESSION_COLUMNS`."""
        return cls(
            id=row.id,
            version=row.version,
            server_start=row.server_start,
            format=row.format,
            model=row.model,
            turn_count=row.turn_count,
            message_count=row.message_count,
            context=TokenBreakdown(tokens=row.context_components),
            shown=TokenBreakdown(tokens=row.shown_components or row.context_components),
            snapshot_end=row.snapshot_end,
            context_start=row.context_start,
            continuation=continuation_of(open_calls=row.open_calls, needs_repair=row.needs_repair),
            calibration=calibration_of(row.calibration, model=row.model),
            own_budget=row.budget_tokens,
            context_window=row.context_window,
            edits_revision=row.edits_revision,
            served_turn=row.served_turn,
            served_revision=row.served_revision,
            compaction_count=row.compaction_count,
            omitted_count=row.omitted_count,
            preamble_version=row.preamble_version,
            system=system,
            tools=tools,
            snapshot=snapshot,
            policy=row.policy,
        )

    @property
    def row(self) -> tuple[str, str]:
        """Identifies the version of the session's row."""
        return self.version, self.server_start

    @property
    def cached_version(self) -> PromptVersion:
        return PromptVersion(
            self.edits_revision, self.compaction_count, self.snapshot_end, self.omitted_count
        )

    @property
    def provider_tokens(self) -> int:
        """The size of the prompt in the provider's tokens."""
        return self.calibration.provider(self.shown.total)

    @property
    def budget(self) -> int:
        return budget_tokens(own=self.own_budget, context_window=self.context_window, model=self.model)

    @property
    def shown_tools(self) -> bytes | None:
        """The tool definitions, or None if an edit sheds them."""
        return self.tools if self.shown.tokens.get("tools") else None

    def request_parts(self, format: str) -> RequestParts:
        """Return what a request in the dialect `format` is made of, besides its messages."""
        return RequestParts(
            stored_format=self.format,
            format=format,
            system=self.system,
            tools=self.shown_tools,
            continuation=self.continuation,
            capabilities=capabilities_of(self.model),
        )

    @property
    def has_changed_since_served(self) -> bool:
        """Whether a compaction or a revert has changed the prompt since it was fetched in this turn."""
        return self.served_turn == self.turn_count - 1 and self.served_revision != self.edits_revision

    @property
    def etag(self) -> str:
        """Identifies the prompt. Changes with each push, compaction and revert, and with how it fits."""
        counters = (self.turn_count, self.edits_revision, self.compaction_count, self.preamble_version)
        parts = (*counters, self.provider_tokens, self.budget)
        return "-".join([self.id.hex[-12:], *map(str, parts)])


#: Of a session `s` and its served prompt `v`.
SESSION_COLUMNS: LiteralString = """
s.id, s.xmin::text AS version, extract(epoch FROM pg_postmaster_start_time())::text AS server_start, s.format,
s.model, s.turn_count, s.message_count, s.context_components, s.shown_components, s.snapshot_end,
s.context_start, s.open_calls, s.needs_repair, s.calibration, s.budget_tokens, s.context_window,
s.policy, s.edits_revision, s.compaction_count, s.omitted_count, s.preamble_version,
v.turn AS served_turn, v.edits_revision AS served_revision
"""

#: The session `s`, if the key is valid, and its served prompt `v`.
SESSION: LiteralString = f"""
  FROM agent_sessions_agentsession s
  JOIN accounts_apikey k ON k.id = %(key)s AND {KEY_IS_VALID}
  LEFT JOIN agent_sessions_servedprompt v ON v.session_id = s.id
"""

_STATE: LiteralString = f"""
SELECT {SESSION_COLUMNS},
       p.system, p.tools, b.data AS snapshot, {TEXTS} AS snapshot_texts
  {SESSION}
  LEFT JOIN agent_sessions_preamble p ON p.session_id = s.id AND p.version = s.preamble_version
  LEFT JOIN agent_sessions_promptsnapshot b ON b.session_id = s.id
  LEFT JOIN agent_sessions_edit e ON e.id = b.text_edit
 WHERE s.id = %(session)s AND s.project_id = %(project)s
"""


def prompt_state(*, key_id: UUID, project_id: UUID, session_id: UUID) -> PromptState | None:
    """Return the state of a session, or None if it is not in the project or the key is no longer valid."""
    parameters = {"key": key_id, "project": project_id, "session": session_id}
    row = execute(_STATE, parameters, row_factory=namedtuple_row).fetchone()
    if row is None:
        return None
    return PromptState.from_row(
        row,
        system=bodies.unpack(row.system) if row.system is not None else None,
        tools=bodies.unpack(row.tools) if row.tools is not None else None,
        snapshot=partial(outline_unpack, row.snapshot, row.snapshot_texts),
    )
