"""The working memory of a session, and the facts that sessions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from contextapp_client import types
from contextapp_client.calls import Pages, call, pages
from contextapp_client.endpoint import SessionEndpoint
from contextapp_client.steps import Steps


class MemoryCalls(SessionEndpoint):
    """The calls about the working memory of a session."""

    @call
    def memory(self) -> Steps[types.Memory]:
        """Return the current working memory; revision 0 is empty."""
        return self._json("GET", "memory")

    @call
    def patch_memory(
        self,
        changes: Mapping[str, object],
        *,
        revision: int | None = None,
        author: Literal["model", "harness", "person"] | None = None,
        reason: str | None = None,
    ) -> Steps[types.Memory]:
        """Replace fields of the working memory; None clears a field.

        With `revision`, raises `Conflict` with code `precondition_failed` if that is no longer the latest
        revision.
        """
        return self._json(
            "PATCH",
            "memory",
            body=changes,
            query={"author": author, "reason": reason},
            headers={"If-Match": "*" if revision is None else f'"{revision}"'},
            # Repeating the same change has no effect, but with a revision the second attempt would fail.
            repeatable=revision is None,
        )

    @call
    def propose_facts(self, items: Sequence[types.NewFact] | None = None) -> Steps[list[types.Fact]]:
        """Propose items as facts for other sessions. Defaults to all memory items that can apply to them."""
        body = {} if items is None else {"items": list(items)}
        page = yield from self._json("POST", "memory", "proposals", body=body)
        facts: list[types.Fact] = page["data"]
        return facts

    @call
    def memory_offers(self) -> Steps[list[types.Fact]]:
        """Return accepted facts of other sessions that are not in the working memory yet."""
        page = yield from self._json("GET", "memory", "offers")
        facts: list[types.Fact] = page["data"]
        return facts

    @call
    def take_offers(self, facts: Sequence[str] | None = None) -> Steps[types.Memory]:
        """Import offered facts into the working memory by id. Defaults to all of them."""
        body = {} if facts is None else {"facts": list(facts)}
        return self._json("POST", "memory", "offers", body=body)

    @pages
    def memory_revisions(self) -> Pages[types.Memory]:
        """Iterate over all revisions of the working memory, newest first."""
        return self._pages("memory", "revisions")

    @call
    def memory_diff(self, *, first: int | None = None, last: int | None = None) -> Steps[types.JsonObject]:
        """Return the changes between two revisions, and whether fields are rewritten again and again.

        Defaults to the changes of the latest revision.
        """
        return self._json("GET", "memory", "diff", query={"from": first, "to": last})
