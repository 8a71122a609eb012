"""Play a sample session: push its turns, fetch each prompt, and report the usage that a provider would."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import orjson
from django.db import connection

from accounts.models import ApiKey, Project
from compaction.messages import Usage
from compaction.prefixes import common_length
from sessions.models import AgentSession
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.prompts.state import prompt_state
from sessions.selectors.prompts.stored import messages_now
from sessions.selectors.redaction import redaction_of
from sessions.services.agent_tools import TOOLS, ToolError
from sessions.services.compactions.apply import session_compact
from sessions.services.ingestion import messages_ingest, preamble_ingest
from sessions.services.prompts.served import prompt_record
from sessions.services.push.turns import turn_push
from sessions.services.push.values import Latency, Push, Target
from sessions.services.samples.catalog import Story
from sessions.services.samples.stories.steps import Call, Step
from sessions.services.samples.wire import (
    assistant_message,
    result_messages,
    tool_definitions,
    user_message,
)
from sessions.services.sessions.lifecycle import NewSession, session_create
from sessions.store.prompt_bytes import request_fields

#: Approximate characters per token of the provider.
_CHARACTERS = 3.3
#: Minutes after which the provider's cache expires.
_CACHE_MINUTES = 5


def story_play(
    *, project: Project, key: ApiKey, story: Story, begin: datetime, parent_id: UUID | None
) -> AgentSession:
    """Create the session of a story, starting at `begin`. The caller holds a transaction.

    Prompts are served and compacted by the same services as those of agents.
    """
    return _Player(project, key, story, begin, parent_id).play()


class _Player:
    """A session in progress: its clock, and the parts of the prompt that the provider's cache holds."""

    def __init__(
        self, project: Project, key: ApiKey, story: Story, begin: datetime, parent_id: UUID | None
    ) -> None:
        self._project, self._key, self._story, self._now = project, key, story, begin
        self._redaction, self._prices = redaction_of(project), custom_prices(project)
        self._times: list[datetime] = []
        self._cached: list[bytes] = []
        self._calls = 0
        self._session = self._create(parent_id)

    def play(self) -> AgentSession:
        for step in self._story.steps():
            self._step(step)
        session_backdate(session=self._session, times=self._times)
        self._session.refresh_from_db()
        return self._session

    def _create(self, parent_id: UUID | None) -> AgentSession:
        story = self._story
        preamble, _ = preamble_ingest(story.system, tool_definitions(story.format), redaction=self._redaction)
        new = NewSession(
            format=story.format,
            external_id=f"sample-{story.key}",
            title=story.title,
            agent=story.agent,
            model=story.model,
            tags=("sample", *story.tags),
            metadata={"repository": "tidewater", "branch": "main"},
            budget_tokens=story.budget_tokens,
            policy=story.policy,
            preamble=preamble,
            created_by_id=self._key.created_by_id,
            parent_id=parent_id,
        )
        return session_create(project_id=self._project.pk, new=new)[0]

    def _step(self, step: Step) -> None:
        if step.pause:
            self._now += timedelta(minutes=step.pause)
        if step.pause > _CACHE_MINUTES:
            self._cached = []
        if step.user:
            self._now += timedelta(minutes=2)
            self._push([user_message(step.user)])
        prompt, values = self._prompt()
        usage = self._usage(prompt)
        calls = self._resolved(step.calls, values)
        message = assistant_message(step, calls, self._story.format)
        usage = replace(usage, output_tokens=_tokens(orjson.dumps(message)))
        results = {id: self._run(call) for id, call in calls.items()}
        duration = 900 + usage.output_tokens * 17
        latency = Latency(first_token_ms=480 + usage.prompt_tokens // 40, duration_ms=duration)
        self._now += timedelta(milliseconds=duration)
        self._push([message, *result_messages(results, self._story.format)], usage=usage, latency=latency)
        self._now += timedelta(seconds=3 + 4 * len(calls))
        if step.compacts:
            session_compact(session=self._session, trigger="user", reason=step.compacts)

    def _push(self, messages: Sequence[Mapping[str, Any]], **reported: Any) -> None:
        raw = [orjson.dumps(message) for message in messages]
        ingested, found = messages_ingest(raw, messages, format=self._story.format, redaction=self._redaction)
        push = Push(
            messages=ingested, redacted=found, model=self._story.model, prices=self._prices, **reported
        )
        turn_push(self._target, push)
        self._times.append(self._now)

    @property
    def _target(self) -> Target:
        return Target(key_id=self._key.pk, project_id=self._project.pk, session_id=self._session.pk)

    def _prompt(self) -> tuple[list[bytes], list[dict[str, Any]]]:
        """Fetch the prompt. Return its parts as JSON, and its messages."""
        target = self._target
        state = prompt_state(key_id=self._key.pk, project_id=target.project_id, session_id=target.session_id)
        messages = messages_now(state) if state is not None else None
        assert state is not None
        assert messages is not None  # the transaction has created the session
        fields = request_fields(messages, state.request_parts(self._story.format))
        prompt_record(state)
        body = orjson.loads(orjson.dumps(fields))
        values = body.pop("messages")
        return [*(orjson.dumps(body[name]) for name in sorted(body)), *map(orjson.dumps, values)], values

    def _usage(self, prompt: list[bytes]) -> Usage:
        """Return the usage of a call: the cache holds the parts at the start that did not change."""
        same = common_length(prompt, self._cached)
        read, rest = (sum(map(_tokens, parts)) for parts in (prompt[:same], prompt[same:]))
        self._cached = prompt
        if self._story.format == "openai":
            return Usage(cache_read_tokens=read, uncached_tokens=rest)
        uncached = min(rest, 4)
        return Usage(cache_read_tokens=read, uncached_tokens=uncached, cache_write_tokens=rest - uncached)

    def _resolved(self, calls: Sequence[Call], messages: list[dict[str, Any]]) -> dict[str, Call]:
        """Return the calls by id, with the handle of the output that a call retrieves.

        Without such a handle, the output is still in the prompt, and the call is omitted.
        """
        found = {}
        for call in calls:
            if call.tool == "expand_clip":
                handle = _handle(messages, call.arguments["about"])
                if handle is None:
                    continue
                call = replace(call, arguments={"handle": handle, "grep": call.arguments["grep"]})
            self._calls += 1
            found[f"call_{self._story.key}_{self._calls:03}"] = call
        return found

    def _run(self, call: Call) -> tuple[str, bool]:
        tool = TOOLS.get(call.tool)
        if tool is None:
            return call.output, call.is_error
        try:
            return tool.run(self._session, call.arguments), False
        except ToolError as error:
            return str(error), True


def _handle(messages: Sequence[Mapping[str, Any]], about: str) -> str | None:
    """Return the handle in the newest shortened output of a call that mentions `about`."""
    calls: set[str] = set()
    handles: list[str] = []
    for message in messages:
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use" and about in orjson.dumps(block["input"]).decode():
                calls.add(block["id"])
            elif block["type"] == "tool_result" and block["tool_use_id"] in calls:
                handles += re.findall(r"handle (h_\w+)", orjson.dumps(block["content"]).decode())
    return handles[-1] if handles else None


def _tokens(data: bytes) -> int:
    return round(len(data) / _CHARACTERS)


#: The statements that backdate the rows of a session, by turn.
_STATEMENTS: Sequence[LiteralString] = (
    """
    UPDATE agent_sessions_turn r SET at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.index = t.turn
    """,
    """
    UPDATE agent_sessions_memoryrevision r SET created_at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.turn_index = t.turn
    """,
    # Clear `awaits_upgrade`, so that no model is paid to improve the recap of a fictional session.
    """
    UPDATE agent_sessions_compaction r
       SET created_at = t.at, started_at = t.at, finished_at = t.at, awaits_upgrade = false
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.turn_index = t.turn
    """,
    """
    UPDATE agent_sessions_recap r SET created_at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at), agent_sessions_compaction c
     WHERE c.session_id = %(session)s AND c.turn_index = t.turn AND r.compaction_id = c.id
    """,
)


def session_backdate(*, session: AgentSession, times: Sequence[datetime]) -> None:
    """Set the time of each turn, its memory and its compactions. `times` has one entry for each turn."""
    turns = list(range(len(times)))
    parameters: dict[str, Any] = {"turns": turns, "times": list(times), "session": session.pk}
    with connection.cursor() as cursor:
        for statement in _STATEMENTS:
            cursor.execute(statement, parameters)
    AgentSession.objects.filter(pk=session.pk).update(
        created_at=times[0], started_at=times[0], last_active_at=times[-1]
    )
