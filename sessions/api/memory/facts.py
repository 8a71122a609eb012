"""`memory/facts/`, `proposals/` and `offers/`: facts shared between sessions."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from accounts.models import Scope
from compaction.errors import WorkingMemoryError
from compaction.memory.origins import Author
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, NotFound
from sessions.api.lookup import row_or_404, session_or_404
from sessions.api.memory.shapes import etag_of, memory_error, memory_json
from sessions.api.paging import id_cursor, limit_param, page_json, paging
from sessions.api.parameters import choice_param
from sessions.api.schema import operation
from sessions.api.serializers import memory as serializers
from sessions.models import SharedFact
from sessions.selectors.memory.facts import facts_of, facts_offered, facts_page
from sessions.services.memory.facts import FactDeleted, fact_decide, facts_import
from sessions.services.memory.proposals import MemoryItem, facts_propose
from sessions.services.memory.revisions import MemoryTooLarge, ProtectedItem


class Facts(Endpoint):
    @operation(
        "memory_facts_list",
        "List shared facts",
        serializers.MemoryFactPage,
        parameters=[
            OpenApiParameter(
                "state", str, enum=SharedFact.State.values, description="Only facts in this state."
            ),
            OpenApiParameter("agent", str, description="Only facts for this agent or for all agents."),
            *paging(),
        ],
    )
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns the facts that sessions of the project proposed to share, newest first."""
        state, agent = choice_param(call, "state", SharedFact.State.values), call.query.get("agent")
        if agent is not None and "\0" in agent:
            raise InvalidField("agent", "`agent` must not contain NUL characters.")
        limit, after, project_id = limit_param(call), id_cursor(call), call.principal.project_id
        rows = facts_page(project_id=project_id, state=state, agent=agent, after=after, limit=limit + 1)
        return json_response(page_json(rows, limit, fact_json, lambda fact: [str(fact.pk)]))


class FactView(Endpoint):
    @operation(
        "memory_facts_decide",
        "Review a shared fact",
        serializers.MemoryFact,
        request=serializers.MemoryFactDecision,
    )
    def patch(self, call: ApiCall, fact_id: str) -> HttpResponse:
        """Accepts, rejects or rewords a fact. Sessions are offered only accepted facts."""
        data = call.validated(serializers.MemoryFactDecision)
        fact = row_or_404(facts_of(project_id=call.principal.project_id), fact_id, kind="fact")
        try:
            fact_decide(fact=fact, actor=call.actor, **data)
        except FactDeleted:
            raise NotFound("The fact was deleted during the request.", param="fact_id") from None
        except WorkingMemoryError as error:
            raise memory_error(error) from None
        return json_response(fact_json(fact))

    scopes = {"PATCH": Scope.ADMIN}


class Proposals(Endpoint):
    @operation(
        "memory_proposals_create",
        "Propose facts",
        serializers.MemoryFactList,
        request=serializers.MemoryProposal,
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Proposes items of the session's working memory as facts to share with other sessions. Proposals
        must be accepted before sessions are offered them."""
        data = call.validated(serializers.MemoryProposal)
        session = session_or_404(call, session_id)
        items = [MemoryItem(**item) for item in data["items"]] if data.get("items") is not None else None
        try:
            facts = facts_propose(session=session, items=items)
        except WorkingMemoryError as error:
            raise memory_error(error) from None
        return json_response({"data": [fact_json(fact) for fact in facts]})


class Offers(Endpoint):
    @operation("memory_offers_list", "List offered facts", serializers.MemoryFactList)
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns accepted facts that apply to the session's agent and are not in its working memory yet."""
        facts = facts_offered(session=session_or_404(call, session_id))
        return json_response({"data": [fact_json(fact) for fact in facts]})

    @operation(
        "memory_offers_take",
        "Import offered facts",
        serializers.MemoryRevision,
        request=serializers.MemoryImport,
        errors=(409, 422),
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Adds offered facts to the session's working memory."""
        ids = call.validated(serializers.MemoryImport).get("facts")
        session = session_or_404(call, session_id)
        offered = facts_offered(session=session)
        facts = [fact for fact in offered if ids is None or fact.pk in ids]
        if ids is not None and len(facts) < len(set(ids)):
            raise InvalidField("facts", "`facts` contains a fact that is not offered to this session.")
        try:
            revision = facts_import(session=session, facts=facts, author=Author.HARNESS)
        except (MemoryTooLarge, ProtectedItem, WorkingMemoryError) as error:
            raise memory_error(error) from None
        return json_response(memory_json(revision), headers={"ETag": etag_of(revision)})


def fact_json(fact: Any) -> dict[str, Any]:
    """Return the JSON of a row of `facts_of`, which includes its doubts."""
    return {
        "id": str(fact.pk),
        "agent": fact.agent,
        "field": fact.field,
        "text": fact.text,
        "state": fact.state,
        "session": str(fact.session_id) if fact.session_id else None,
        "revision": fact.revision,
        "seen_in": fact.seen_in,
        "seen_at": fact.seen_at,
        "created_at": fact.created_at,
        "confirmed_at": fact.confirmed_at,
        "expires_at": fact.expires_at,
        "doubts": [{"session": str(sighting.session_id), "why": sighting.doubt} for sighting in fact.doubts],
    }
