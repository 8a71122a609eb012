"""The rows of one generated session. All values come from one seeded random generator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import pricing
from bench.store_derived import ToolRows, profile_row, scan_row
from bench.store_tables import Row, message_row, row_of, turn_row, uuid_of
from bench.store_texts import Bodies, text_of
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.messages import Usage
from compaction.policy import Policy
from compaction.recap import Item
from compaction.recap import Recap as RecapValue
from sessions.models import AgentSession, Compaction, Preamble, Recap
from sessions.selectors.compactions.recaps import recap_columns
from sessions.selectors.convert import edit_row
from sessions.store import bodies

#: Each agent with its model, budget in tokens and relative frequency.
AGENTS = (
    ("code-reviewer", "claude-sonnet-4-5", 120_000, 30),
    ("bug-fixer", "claude-sonnet-4-5", 100_000, 25),
    ("support", "gpt-5-mini", 60_000, 20),
    ("researcher", "gpt-5", 150_000, 15),
    ("triage", "claude-haiku-4-5", 40_000, 8),
    ("in-house", "acme-7b-instruct", 30_000, 2),
)
TAGS = ("nightly", "customer", "internal", "release", "experiment", "urgent")
SYSTEM, TOOL_TOKENS = 1_800, 2_400


@dataclass(slots=True, kw_only=True)
class Made:
    """The rows of one session, by table."""

    session: Row
    preamble: Row
    turns: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    compactions: list[Row] = field(default_factory=list)
    edits: list[Row] = field(default_factory=list)
    recaps: list[Row] = field(default_factory=list)
    tools: ToolRows = field(default_factory=ToolRows)
    scan: Row = field(default_factory=dict)
    profile: Row = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Context:
    """The tokens of the next prompt, with and without edits."""

    raw: dict[str, int]
    shown: dict[str, int]
    cached: int = 0
    evicted_to: int = 0

    def add(self, component: str, tokens: int) -> None:
        self.raw[component] = self.raw.get(component, 0) + tokens
        self.shown[component] = self.shown.get(component, 0) + tokens


def session_rows(
    random_: random.Random,
    made_of: Bodies,
    project: UUID,
    users: Sequence[int],
    *,
    number: int,
    turns: int,
    until: datetime,
    is_imported: bool = False,
) -> Made:
    """Return the rows of a session. An imported one has no compactions."""
    started = until - timedelta(seconds=max(random_.uniform(0, 90 * 86_400), turns * 80))
    session = _session(random_, project, users, number=number, started=started, is_imported=is_imported)
    made = Made(session={}, preamble=row_of(_preamble(session)))
    context = _Context(
        raw={"system": SYSTEM, "tools": TOOL_TOKENS}, shown={"system": SYSTEM, "tools": TOOL_TOKENS}
    )
    id, model, at = session.pk, session.model, started
    first, step = random_.randrange(len(made_of.steps)), made_of.steps
    position, sizes = 0, list[int]()
    for index in range(turns):
        came = step[(first + index - 1) % len(step)][1] if index else random_.choice(made_of.questions)
        answer = step[(first + index) % len(step)][0]
        context.add("tool_outputs" if index else "user", came.tokens)
        usage = _usage(random_, context, answer.tokens)
        day = at.replace(hour=0, minute=0, second=0, microsecond=0)
        cost = pricing.price(model, usage, day).microusd
        made.turns.append(turn_row(id, index, at, model, position, context.raw, context.shown, usage, cost))
        made.messages.append(message_row(id, position, index, came))
        made.messages.append(message_row(id, position + 1, index, answer))
        if index:
            tool = step[(first + index - 1) % len(step)][0].tool
            made.tools.add(session, position=position, turn=index, tool=tool, tokens=came.tokens, at=at)
        context.add("assistant", answer.tokens)
        position += 2
        _count(session, usage, cost)
        sizes.append(usage.prompt_tokens)
        is_over = sum(context.shown.values()) > 0.7 * session.budget_tokens and not is_imported
        if is_over and position - context.evicted_to > 12:
            _compact(random_, made, context, session, index, position, at)
        at += timedelta(seconds=random_.expovariate(1 / 25) if random_.random() < 0.97 else 1_800)
    session.turn_count, session.message_count = turns, position
    session.last_active_at, session.peak_prompt_tokens = at, max(sizes)
    session.context_components, session.shown_components = context.raw, context.shown
    session.open_calls = [f"toolu_{(first + turns - 1) % len(step):08d}"]
    made.session = row_of(session)
    made.scan, made.profile = scan_row(session, {}), profile_row(session, sizes, at)
    return made


def _session(
    random_: random.Random,
    project: UUID,
    users: Sequence[int],
    *,
    number: int,
    started: datetime,
    is_imported: bool,
) -> AgentSession:
    agent, model, budget, _ = random_.choices(AGENTS, weights=[each[-1] for each in AGENTS])[0]
    return AgentSession(
        id=uuid_of(random_, started),
        project_id=project,
        external_id=f"run-{number:05d}",
        title=f"{agent}: {text_of(random_, 40)}",
        agent=agent,
        model=model,
        format="anthropic",
        origin="claude-code" if is_imported else "api",
        tags=sorted(random_.sample(TAGS, k=random_.randrange(3))),
        metadata={"run": number},
        budget_tokens=budget,
        context_window=pricing.context_window(model),
        created_by_id=random_.choices(users, weights=range(len(users), 0, -1))[0],
        created_at=started,
        started_at=started,
        preamble_version=1,
        preamble_hash=bodies.content_hash(b"generated"),
    )


def _preamble(session: AgentSession) -> Preamble:
    return Preamble(
        session_id=session.pk,
        version=1,
        from_turn=0,
        system=bodies.json_bytes("You are an agent. " + "Be exact. " * 40),
        system_tokens=SYSTEM,
        tools_tokens=TOOL_TOKENS,
    )


def _usage(random_: random.Random, context: _Context, output: int) -> Usage:
    """Return the usage that a provider would report: mostly, earlier content is read from the cache."""
    prompt = int(sum(context.shown.values()) * 1.05)
    read = min(context.cached, prompt) if random_.random() < 0.95 else 0
    context.cached = prompt
    return Usage(
        uncached_tokens=3,
        cache_read_tokens=read,
        cache_write_tokens=max(prompt - read - 3, 0),
        output_tokens=output,
    )


def _count(session: AgentSession, usage: Usage, cost: int | None) -> None:
    session.uncached_tokens += usage.uncached_tokens
    session.cache_read_tokens += usage.cache_read_tokens
    session.cache_write_tokens += usage.cache_write_tokens
    session.output_tokens += usage.output_tokens
    session.cost_microusd += cost or 0
    session.unpriced_turns += cost is None
    session.last_prompt_tokens = usage.prompt_tokens


def _compact(
    random_: random.Random,
    made: Made,
    context: _Context,
    session: AgentSession,
    index: int,
    position: int,
    at: datetime,
) -> None:
    """Evict everything but the first message and the last ten, and replace it with a recap."""
    before, end = sum(context.shown.values()), position - 11
    recap = RecapValue(first_turn=0, last_turn=end // 2, facts=(Item(text=text_of(random_, 600)),))
    text = recap.render()
    kept = sum(row["tokens"] for row in made.messages[end + 1 :])
    recap_tokens = len(text) // 4
    context.shown = {"system": SYSTEM, "tools": TOOL_TOKENS, "user": made.messages[0]["tokens"]}
    context.shown |= {"recap": recap_tokens, "tool_outputs": kept}
    after = sum(context.shown.values())
    context.cached, context.evicted_to = SYSTEM + TOOL_TOKENS, end
    session.compaction_count += 1
    by_model = random_.random() < 0.35
    compaction = Compaction(
        id=uuid_of(random_, at),
        session_id=session.pk,
        number=session.compaction_count,
        state=Compaction.State.DONE,
        trigger="soft" if by_model else "hard",
        turn_index=index,
        snapshot_position=position,
        policy=Policy().to_json(),
        tokens_before=before,
        tokens_after=after,
        record=_record(before, after, session.budget_tokens, kept + recap_tokens, end, by_model),
        cost_microusd=random_.randrange(2_000, 40_000) if by_model else 0,
        created_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=4 if by_model else 0),
    )
    edit = EditValue(
        strategy="recap",
        op=Op.EVICT,
        position=1,
        end=end,
        text=text,
        reason=f"messages 1 to {end} became a recap",
        tokens_before=before - after + recap_tokens,
        tokens_after=recap_tokens,
    )
    stored = Recap(
        compaction=compaction,
        author=Recap.Author.MODEL if by_model else Recap.Author.EXTRACTOR,
        model="claude-haiku-4-5" if by_model else "",
        tokens=recap_tokens,
        created_at=at,
        **recap_columns(recap, [edit]),
    )
    made.compactions.append(row_of(compaction))
    made.edits.append(_edit_row(compaction, edit))
    made.recaps.append(row_of(stored))


def _edit_row(compaction: Compaction, edit: EditValue) -> Row:
    return {
        "compaction_id": compaction.pk,
        "session_id": compaction.session_id,
        "ordinal": 0,
        **edit_row(edit),
        "referenced_text": "",
        "referenced_how": "",
    }


def _record(before: int, after: int, budget: int, rebilled: int, dropped: int, by_model: bool) -> Row:
    saved = before - after
    return {
        "state": "done",
        "trigger": "soft" if by_model else "hard",
        "strategies": ["recap"],
        "steps": [{"name": "recap", "edits": 1, "tokens_after": after}],
        "budget": budget,
        "target": int(budget * 0.4),
        "calibration": 1.05,
        "overhead": 0,
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": saved,
        "dropped": dropped,
        "collapsed": 0,
        "summarizer_needed": True,
        "head_tokens": SYSTEM,
        "middle_tokens": saved,
        "tail_tokens": rebilled,
        "tail_bound": "messages",
        "head_verbatim": True,
        "tail_verbatim": True,
        "exceptions": [],
        "tokens_rebilled": rebilled,
        "break_even_turns": round(11.5 * rebilled / saved, 1) if saved else None,
        "policy": "balanced",
        "policy_version": 1,
        "fits": True,
        "reason": "",
        "duration_ms": 12.0,
        "summary_used": by_model,
    }
