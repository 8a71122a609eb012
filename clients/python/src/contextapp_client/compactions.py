"""The compactions of a session, and the content that they remove from the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from contextapp_client import types
from contextapp_client.calls import Pages, call, pages
from contextapp_client.endpoint import SessionEndpoint
from contextapp_client.payloads import given
from contextapp_client.prompt import Prompt
from contextapp_client.steps import Steps


class CompactionCalls(SessionEndpoint):
    """The calls about the compactions of a session."""

    @call
    def compact(
        self,
        *,
        instructions: str | None = None,
        policy: str | Mapping[str, object] | None = None,
        preview: bool = False,
    ) -> Steps[types.CompactionRecord]:
        """Compact the session now. With `preview`, return what a compaction would do without applying it."""
        body = given(instructions=instructions, policy=policy, preview=preview or None)
        return self._json("POST", "compact", body=body, repeatable=preview)

    @pages
    def compactions(self) -> Pages[types.CompactionRecord]:
        """Iterate over the compactions, newest first."""
        return self._pages("compactions")

    @call
    def compaction(self, number: int) -> Steps[types.CompactionRecord]:
        """Return a compaction with its edits and its recap."""
        return self._json("GET", "compactions", str(number))

    @call
    def edit_recap(self, number: int, text: str) -> Steps[types.CompactionRecord]:
        """Replace the recap of a compaction, from the next prompt on. Returns the compaction that does so."""
        return self._json("POST", "compactions", str(number), "recap", body={"text": text})

    @call
    def record_summary(self, prompt: Prompt, response: Mapping[str, object]) -> Steps[types.CompactionRecord]:
        """Record the summary that the provider wrote for `prompt.summary_request`.

        `response` is its response as a dict: `message.to_dict()` with Anthropic's SDK.
        """
        if prompt.summary_request is None:
            raise ValueError("the prompt has no `summary_request`")
        names = ("content", "stop_reason", "model", "usage")
        body = {name: response[name] for name in names if response.get(name) is not None}
        body["before"] = prompt.summary_request["before"]
        return self._json("POST", "compactions", body=body)

    @call
    def revert(self, number: int) -> Steps[types.CompactionRecord]:
        """Revert a compaction: remove its edits from the prompt. Its record is kept."""
        return self._json("POST", "compactions", str(number), "revert")

    @call
    def pin(self, position: int) -> Steps[None]:
        """Keep a message and the rest of its tool group unchanged in later compactions."""
        yield from self._call("PUT", "messages", str(position), "pin", repeatable=True)

    @call
    def unpin(self, position: int) -> Steps[None]:
        """Let later compactions shorten or remove a pinned message."""
        yield from self._call("DELETE", "messages", str(position), "pin")

    @call
    def expand(
        self,
        handle: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
        unit: Literal["lines", "characters"] | None = None,
        grep: str | None = None,
        context: int | None = None,
    ) -> Steps[types.Content]:
        """Return content that was removed from the prompt, by its handle.

        Returns all of it, `limit` lines (or characters) starting at `offset`, or the lines that match the
        regular expression `grep` with `context` lines around each.
        """
        query = {"offset": offset, "limit": limit, "unit": unit, "grep": grep, "context": context}
        return self._json("GET", "blobs", handle, query=query)
