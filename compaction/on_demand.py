"""Summaries that Anthropic writes on demand (beta `compact-2026-09-04`).

A separate request with the beginning of a conversation returns a signed block, which replaces these messages
in later requests. Unlike a summary by contextapp, it keeps the thinking of the messages that follow it valid
(rule A11) if these directly continue the summarized ones and are unchanged, and if system prompt, tools and
model remain the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compaction.messages import JSON, Role
from compaction.provider_summary import COMPACTION, is_signed

BETA = "compact-2026-09-04"

#: The longest instructions that Anthropic accepts, in characters.
_MAX_INSTRUCTIONS = 16_384

#: Output tokens of a request for a summary: they include the model's thinking.
_MIN_OUTPUT = 8_192

#: Fields that Anthropic rejects together with `compaction`, or that only concern the agent's own request.
_LEFT_OUT = frozenset({"stream", "context_management", "stop_sequences", "diagnostics"})
_FORCED_CHOICES = frozenset({"any", "tool"})

_INSTRUCTIONS = """\
Summarize the conversation for yourself, so that you can continue the task without it. Do not call tools. \
Write four sections: Decisions, Entities (files, names, values), Facts, Open items. Keep identifiers, paths \
and figures verbatim, and the latest request of the user. Never repeat credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemand:
    """When to request a summary from the provider, and what it must keep.

    `threshold` is the size of the prompt in the provider's tokens, `keep` the share of the messages that
    follow the summary unchanged.
    """

    threshold: int
    keep: float
    instructions: str

    @property
    def compaction(self) -> dict[str, JSON]:
        """The value of `compaction` in the request."""
        return {"type": "summarize", "instructions": self.instructions}


def summary_instructions(memory: str = "", *, further: str = "") -> str:
    """Return the instructions for a summary that keeps the working memory, with those of the policy."""
    parts = [_INSTRUCTIONS, further.strip()]
    if memory.strip():
        parts.append(f"Keep this working memory in the summary, verbatim:\n\n{memory}")
    return "\n\n".join(filter(None, parts))[:_MAX_INSTRUCTIONS]


def summarized_count(roles: Sequence[str], sizes: Sequence[int], *, keep: float) -> int | None:
    """Return how many messages a request for a summary contains, or None if no message can be removed.

    The kept ones begin with an answer to a user message. They are at least the share `keep` of the sizes, and
    at most half unless the last answer is that large.
    """
    total, kept, found = sum(sizes), 0, None
    for index in range(len(roles) - 1, 1, -1):
        kept += sizes[index]
        if roles[index] != Role.ASSISTANT or roles[index - 1] != Role.USER:
            continue
        if found is not None and kept > total / 2:
            break
        found = index
        if kept >= keep * total:
            break
    return found


def summary_request(fields: Mapping[str, JSON], *, count: int, compaction: JSON) -> bytes:
    """Return the body of a request for a summary of the first `count` messages of an agent's request."""
    body = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in _FORCED_CHOICES:
        del body["tool_choice"]
    config = without_remaining(body.get("output_config"))
    if isinstance(config, Mapping):
        body["output_config"] = {name: value for name, value in config.items() if name != "format"}
    given = body.get("max_tokens")
    body["max_tokens"] = max(given if isinstance(given, int) else 0, _MIN_OUTPUT)
    body["messages"] = list(fields["messages"])[:count]
    body["compaction"] = compaction
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def without_remaining(config: JSON) -> JSON:
    """Return `output_config` without the rest of a task's budget, which counts messages that are removed."""
    budget = config.get("task_budget") if isinstance(config, Mapping) else None
    if not isinstance(budget, Mapping):
        return config
    return {**config, "task_budget": {name: value for name, value in budget.items() if name != "remaining"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandSummary:
    """The response to a request for a summary. Without `block`, `reason` explains why there is none."""

    block: Mapping[str, JSON] | None = None
    reason: str = ""
    model: str = ""
    usage: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def of(cls, response: JSON) -> OnDemandSummary:
        """Read a response with status 200."""
        if not isinstance(response, Mapping):
            return cls(reason="the response is not a message")
        model, usage = response.get("model"), response.get("usage")
        model = model if isinstance(model, str) else ""
        usage = usage if isinstance(usage, Mapping) else {}
        content, stop = response.get("content"), response.get("stop_reason")
        block = content[0] if isinstance(content, list) and len(content) == 1 else None
        if stop != COMPACTION or not is_signed(block) or not _has_text(block):
            return cls(reason=f"the provider returned no summary ({stop})", model=model, usage=usage)
        return cls(block=block, model=model, usage=usage)

    @property
    def text(self) -> str:
        """The readable text of the summary."""
        return str(self.block["content"]) if self.block is not None else ""

    @property
    def calls(self) -> list[Mapping[str, JSON]]:
        """The usage of the calls that wrote the summary."""
        found = self.usage.get("iterations")
        return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _has_text(block: JSON) -> bool:
    text = block.get("content") if isinstance(block, Mapping) else None
    return isinstance(text, str) and bool(text.strip())
