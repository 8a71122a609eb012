"""New input of a turn: the messages that the previous call did not include, largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sessions.models import AgentSession
from sessions.pages.session.past_prompt_rows import PromptRow, prompt_rows
from sessions.selectors.past_prompts.outline import Outline

#: Maximum number of listed messages; a push can contain any number.
ROWS_LIMIT = 40

_NAMES = {"tool": "tool outputs", "assistant": "assistant", "user": "user", "system": "system"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInput:
    """The largest new messages (`rows`), totals of all (`count`, `tokens`), and tokens of `rows` by voice.

    `preamble` contains the changes of the system prompt and of the tool definitions, in tokens.
    """

    rows: Sequence[PromptRow]
    count: int
    tokens: int
    by_voice: Sequence[tuple[str, int]]
    preamble: Sequence[tuple[str, int]]


def new_input_of(session: AgentSession, outline: Outline, new_from: int) -> NewInput:
    new = [entry for entry in outline.between(new_from, outline.end) if not entry.is_generated]
    largest = sorted(new, key=lambda entry: -entry.message.tokens)[:ROWS_LIMIT]
    known = outline.between(new_from - 2, new_from)
    rows = [row for row in prompt_rows(session, outline, [*known, *largest], new_from=new_from) if row.is_new]
    sums = Counter[str]()
    for row in rows:
        sums[_NAMES.get(row.voice, row.voice)] += row.tokens
    return NewInput(
        rows=rows,
        count=len(new),
        tokens=sum(entry.message.tokens for entry in new),
        by_voice=sums.most_common(),
        preamble=_preamble_changes(session, outline),
    )


def _preamble_changes(session: AgentSession, outline: Outline) -> Sequence[tuple[str, int]]:
    new = outline.preamble
    if new is None or new.from_turn != outline.index:
        return []
    before = session.preambles.filter(version=new.version - 1)
    system, tools = before.values_list("system_tokens", "tools_tokens").first() or (0, 0)
    changes = [
        ("system prompt", new.system_tokens - system),
        ("tool definitions", new.tools_tokens - tools),
    ]
    return [(name, tokens) for name, tokens in changes if tokens]
