"""Anthropic's API with context editing, both kinds of summaries, and thinking that is bound to the prompt.

It rejects what Anthropic's documentation says that the API rejects, with the documented errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tests.gateway.anthropic_talk import STREAM, event, stream, tool_use
from tests.gateway.double import Received, Reply

JSON = dict[str, Any]

CLEARING, THRESHOLD, ON_DEMAND = (
    "context-management-2025-06-27", "compact-2026-01-12", "compact-2026-09-04",
)  # fmt: skip

_REJECTED = ("context_management", "stop_sequences")


class Rejected(Exception):
    """The request breaks a rule. The message is that of the API."""


class Claude:
    """The API. `bodies` are the accepted requests for answers, `summarized` those for summaries."""

    def __init__(self) -> None:
        self.bodies: list[JSON] = []
        self.betas: list[str] = []
        self.summarized: list[JSON] = []
        self.rejected: list[str] = []
        self.replies: list[Reply] = []  #: returned instead of the next summaries
        self._blocks: dict[str, tuple[bytes, str, str]] = {}

    def answer(self, received: Received) -> Reply:
        body = json.loads(received.body)
        betas = (received.header("anthropic-beta") or "").split(",")
        try:
            self._check(body, betas)
        except Rejected as error:
            self.rejected.append(str(error))
            data = {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
            return Reply(status=400, parts=[json.dumps(data).encode()])
        if "compaction" in body:
            return self._summary(body)
        self.bodies.append(body)
        self.betas.append(",".join(betas))
        return self._message(body, size=len(received.body) // 4)

    def _summary(self, body: JSON) -> Reply:
        self.summarized.append(body)
        if self.replies:
            return self.replies.pop(0)
        number = len(self.summarized)
        text = f"Decisions\n- Summary {number}.\n{body['compaction'].get('instructions', '')}"
        sign = hashlib.sha256(f"{number} {text}".encode()).hexdigest()
        prefix, role = self._prefix(body, body["messages"])
        self._blocks[sign] = prefix, role, text
        block = {"type": "compaction", "content": text, "signature": sign}
        call = {"type": "compaction", "input_tokens": 40_000, "output_tokens": 700}
        usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [call]}
        answer = {"id": f"msg_summary_{number}", "type": "message", "role": "assistant"}
        answer |= {"model": body["model"], "content": [block], "stop_reason": "compaction", "usage": usage}
        return Reply(parts=[json.dumps(answer).encode()])

    def _message(self, body: JSON, *, size: int) -> Reply:
        managed = {edit["type"]: edit for edit in body.get("context_management", {}).get("edits", ())}
        bound = self._prefix(body, body["messages"])[0].hex()
        blocks: list[JSON] = [
            {"type": "thinking", "thinking": "Next.", "signature": bound},
            tool_use(f"toolu_{len(self.bodies)}", command="cat"),
        ]
        model = body["model"]
        results = [b for m in body["messages"] for b in _blocks(m) if b["type"] == "tool_result"]
        clear = managed.get("clear_tool_uses_20250919")
        applied: list[JSON] = []
        if clear and size > clear["trigger"]["value"] and len(results) > clear["keep"]["value"]:
            cleared = len(results) - clear["keep"]["value"]
            tokens = sum(len(result["content"]) // 4 for result in results[:cleared])
            applied = [{"type": clear["type"], "cleared_tool_uses": cleared, "cleared_input_tokens": tokens}]
            size -= tokens
        summary = managed.get("compact_20260112")
        if summary and size > summary["trigger"]["value"]:
            block = {"type": "compaction", "content": "We have read many files."}
            return _reply([block, *blocks], size=size, model=model, compacted=True)
        return _reply(blocks, size=size, model=model, applied=applied)

    def block(self, number: int) -> JSON:
        """Return the message with the summary of this number, from 1."""
        sign, (_, _, text) = list(self._blocks.items())[number - 1]
        return {"role": "assistant", "content": [{"type": "compaction", "content": text, "signature": sign}]}

    # -- Rules --------------------------------------------------------------------------------------

    def _check(self, body: JSON, betas: Sequence[str]) -> None:
        messages = body["messages"]
        managed = {edit["type"] for edit in body.get("context_management", {}).get("edits", ())}
        self._must("context_management" not in body or CLEARING in betas, "Extra inputs are not permitted")
        self._must("compact_20260112" not in managed or THRESHOLD in betas, "compact_20260112 needs its beta")
        if "compaction" in body:
            self._check_summary(body, betas)
        signed = [
            (i, j, b) for i, m in enumerate(messages) for j, b in enumerate(_blocks(m)) if "content" in b
            and b["type"] == "compaction" and "signature" in b
        ]  # fmt: skip
        if signed:
            self._must(ON_DEMAND in betas, "compaction is not one of the expected content block types")
            self._must(len(signed) == 1, "more than one compaction block")
            self._must(signed[0][:2] == (0, 0), "compaction_block_misplaced")
            block = signed[0][2]
            self._must(block["signature"] in self._blocks, "compaction_signature_invalid")
            self._must(block["content"] == self._blocks[block["signature"]][2], "compaction_content_mismatch")
            self._must(set(block) <= {"type", "content", "signature", "cache_control"}, "Extra inputs")
            self._must("compact_20260112" not in managed, "threshold compaction with a signed block")
            budget = body.get("output_config", {}).get("task_budget", {})
            self._must("remaining" not in budget, "task_budget.remaining with a compaction block")
        self._check_thinking(body)

    def _check_summary(self, body: JSON, betas: Sequence[str]) -> None:
        self._must(ON_DEMAND in betas, "`compaction` requires anthropic-beta: compact-2026-09-04")
        for name in _REJECTED:
            self._must(name not in body, f"{name} with compaction")
        config = body.get("output_config", {})
        self._must("format" not in config, "output_config.format with compaction")
        self._must("remaining" not in config.get("task_budget", {}), "task_budget.remaining with compaction")
        self._must(body.get("tool_choice", {}).get("type") not in {"any", "tool"}, "tool_choice")
        self._must(body["compaction"].keys() <= {"type", "instructions"}, "compaction")
        self._must(len(body["compaction"].get("instructions", "")) <= 16_384, "instructions are too long")
        self._must(bool(body["messages"]), "compaction_nothing_to_summarize")
        last = body["messages"][-1]
        open_calls = last["role"] == "assistant" and any(b["type"] == "tool_use" for b in _blocks(last))
        self._must(not open_calls, "the last assistant turn ends in a tool call")

    def _check_thinking(self, body: JSON) -> None:
        """Check that each thinking block follows the prompt in which it was written."""
        if not body["model"].endswith("5-5"):
            return
        for index, message in enumerate(body["messages"]):
            for block in _blocks(message):
                if block["type"] == "thinking":
                    prefix = self._prefix(body, body["messages"][:index])[0].hex()
                    text = f"messages.{index}: The block is bound to a different conversation"
                    self._must(block["signature"] == prefix, text)

    def _prefix(self, body: JSON, messages: Sequence[JSON]) -> tuple[bytes, str]:
        """Return the hash of a prompt and the role of its last message.

        A signed block has the hash of the messages that it summarizes, so that those after it keep theirs.
        """
        digest, role = _digest([body.get("system"), body.get("tools"), body["model"]]), ""
        for message in messages:
            blocks = _blocks(message)
            if blocks and blocks[0].get("signature") in self._blocks and blocks[0]["type"] == "compaction":
                digest, role, _ = self._blocks[blocks[0]["signature"]]
                continue
            joined = "joined" if message["role"] == role else ""  # consecutive messages are merged
            digest, role = _digest([digest.hex(), joined, message["role"], blocks]), message["role"]
        return digest, role

    @staticmethod
    def _must(is_met: bool, message: str) -> None:
        if not is_met:
            raise Rejected(message)


def begins_with_block(message: JSON) -> bool:
    blocks = _blocks(message)
    return bool(blocks) and blocks[0]["type"] == "compaction"


def _blocks(message: JSON) -> list[JSON]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _reply(blocks: list[JSON], *, size: int, model: str, applied: Any = (), compacted: bool = False) -> Reply:
    parts = list(stream(*blocks, stop="tool_use", model=model, read=max(size - 312, 0)))
    usage: JSON = {"output_tokens": 57}
    if compacted:
        usage["iterations"] = [
            {"type": "compaction", "input_tokens": size, "output_tokens": 900},
            {"type": "message", "input_tokens": 1_200, "output_tokens": 57},
        ]
    parts[-2] = event(
        "message_delta",
        delta={"stop_reason": "tool_use"},
        usage=usage,
        context_management={"applied_edits": list(applied)},
    )
    return Reply(headers=STREAM, parts=parts)
