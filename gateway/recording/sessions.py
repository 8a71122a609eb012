"""Find or create the session that a call belongs to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q

from accounts.models import ApiKey
from gateway.callers import OBSERVE
from gateway.calls import Call
from gateway.options import BUDGET, budget_of
from gateway.providers import PROVIDERS, Identity
from gateway.providers.base import items, text
from importers.values import title_of
from redaction import Redaction, redact
from sessions.models import AgentSession
from sessions.models.session import GATEWAY, RECORDED, TELEMETRY
from sessions.selectors.lookups import session_find
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.branches import SIDE_TITLE
from sessions.services.reconcile.continued import REFERENCES, session_of_references, session_of_response
from sessions.services.reconcile.find import has_other_conversation, is_of_another_caller, root_of_caller
from sessions.services.reconcile.served import NEVER_COMPACTS
from sessions.services.reconcile.values import Continued
from sessions.services.sessions.lifecycle import NewSession, session_create

#: The beginning of texts that clients insert; the last one is that of Qwen Code and Gemini CLI.
_INSERTED = re.compile(r"\s*(?:<|This is the [\w ]{1,30}\. We are setting up the context)")

Names = TypeVar("Names", Identity, Continued)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The data that determines the session of a call. `history` is the client's history as JSON.

    The names in `identity` and `continued` contain no secrets. `caller` identifies the API key and the
    provider's URL, so that a session id chosen by a client never matches a session of another caller.
    """

    call: Call
    key: ApiKey
    identity: Identity
    history: bytes
    fields: Mapping[str, Any]
    caller: bytes
    redaction: Redaction
    continued: Continued | None = None

    @classmethod
    def of(
        cls, call: Call, key: ApiKey, identity: Identity, *, body: bytes, fields: Mapping[str, Any]
    ) -> Place:
        """Return the place of a call. `body` is the decoded request, `fields` are its parsed fields."""
        provider, redaction = PROVIDERS[call.provider], redaction_of(key.project)
        continued = provider.continued(call.endpoint, fields)
        return cls(
            call=call,
            key=key,
            identity=_without_secrets(identity, redaction),
            history=provider.history(call.endpoint, body, fields),
            fields=fields,
            caller=caller_id(call, key),
            redaction=redaction,
            continued=_without_secrets(continued, redaction) if continued is not None else None,
        )

    @property
    def conversation(self) -> str:
        """The id of the conversation that the provider stores, "" if there is none."""
        return self.continued.conversation if self.continued is not None else ""

    @property
    def name(self) -> str | None:
        """The name of the session: that of the client, or of a conversation that the provider stores."""
        return self.identity.session or self.conversation or None


def _without_secrets(names: Names, redaction: Redaction) -> Names:
    """Redact the names in a request. Later requests with the same names find the same session."""
    clean, findings = redact(asdict(names), redaction=redaction)
    return replace(names, **clean) if findings else names


def caller_id(call: Call, key: ApiKey) -> bytes:
    """Return the id that partitions sessions: a hash of the API key and the provider's URL."""
    return hashlib.blake2b(f"{key.pk}:{call.provider}:{call.upstream}".encode(), digest_size=16).digest()


def is_of_session(call: Call) -> Callable[[Call], bool]:
    """Return a test whether the headers of a call name the same session as this one, or both name none."""

    def named(call: Call) -> tuple[str | None, str]:
        identity = PROVIDERS[call.provider].identity(call.headers, {})
        return identity.session, identity.agent

    caller, name = (call.key, call.provider), named(call)
    return lambda other: (other.key, other.provider) == caller and named(other) == name


def session_of_call(place: Place) -> AgentSession:
    """Return the session of a call, which is created if it does not exist."""
    session = session_find_for_call(place, creates=True)
    assert session is not None
    format = PROVIDERS[place.call.provider].format(place.call.endpoint)
    if session.origin == GATEWAY and not session.message_count and session.format != format:
        # The session was created for a side request, which may call another provider.
        session.format = format
        session.save(update_fields=["format"])
    return session


def session_find_for_call(place: Place, *, creates: bool = False) -> AgentSession | None:
    """Return the session that the client names, or else the one whose history the call continues.

    If there is none, it is created if `creates` is set. Otherwise, returns None.
    """
    if (found := _of_response(place)) is not None:
        return found
    if place.name is None:
        found = _continued(place)
        return _create(place, None) if found is None and creates else found
    name, session = _named(place, place.name)
    if creates and (session is None or session.origin == TELEMETRY):
        # A sub-agent's client may name the session that started it.
        _, parent = _named(place, place.identity.parent)
        session = _create(place, name, parent)
    if session is not None and place.identity.agent:
        session = _child(place, session, place.identity.agent, creates=creates)
    if session is not None and has_other_conversation(session, place.conversation):
        session = _child(place, session, place.conversation, creates=creates)
    return session


def _child(place: Place, parent: AgentSession, name: str, *, creates: bool) -> AgentSession | None:
    """Return the session of a sub-agent or another conversation, which may have been imported from a log."""
    own, child = _named(place, f"{parent.external_id}/{name}")
    child = child or _imported(place, parent, name)
    return _create(place, own, parent) if child is None and creates else child


def _imported(place: Place, parent: AgentSession, agent: str) -> AgentSession | None:
    """Return the session of a sub-agent whose log was imported before the gateway recorded any call of it.

    The logs of Claude Code name it after the main session, and those of Codex by its thread.
    """
    agent = agent.replace("\0", "")
    named = Q(external_id=f"{parent.external_id}:agent-{agent}") | Q(external_id=agent, parent=parent)
    rows = AgentSession.objects.filter(named, project_id=place.key.project_id).exclude(origin__in=RECORDED)
    found = rows.first()
    return found if found is not None and not is_of_another_caller(found, place.caller) else None


def _of_response(place: Place) -> AgentSession | None:
    """Return the session of the response that the call continues, whatever the client names its session."""
    response = place.continued.response_id if place.continued is not None else ""
    return session_of_response(project_id=place.key.project_id, caller=place.caller, response_id=response)


def _continued(place: Place) -> AgentSession | None:
    """Return the session whose history the call contains, or None. It must be the whole history."""
    if place.continued is not None:
        return None
    find = session_of_references if REFERENCES in place.history else root_of_caller
    return find(
        project_id=place.key.project_id,
        caller=place.caller,
        body=place.history,
        redaction=place.redaction,
    )


def _named(place: Place, name: str) -> tuple[str, AgentSession | None]:
    """Return the session with this name and its name, which differs if another caller has one like it."""
    name = name.replace("\0", "")
    found = session_find(project_id=place.key.project_id, name=name)
    if found is not None and is_of_another_caller(found, place.caller):
        name = f"{name}@{place.key.prefix}"
        found = session_find(project_id=place.key.project_id, name=name)
    return name, found


def title_update(session_id: UUID, place: Place, *, is_first: bool) -> None:
    """Name a session after the call of its first turn, or after its second one if it seemed a side request.

    Until then, its title may come from a side request that the client sent first, for example to generate a
    title, or from another conversation with the same session id.
    """
    title = _title(place)
    session = AgentSession.objects.get(pk=session_id)
    if not is_first and session.title != SIDE_TITLE:
        return
    if title and title != session.title and session.origin == GATEWAY and not session.keeps_labels:
        session.title = title
        session.save(update_fields=["title"])


def _create(place: Place, name: str | None, parent: AgentSession | None = None) -> AgentSession:
    model, _ = redact(place.call.model or text(place.fields.get("model")), redaction=place.redaction)
    new = NewSession(
        format=PROVIDERS[place.call.provider].format(place.call.endpoint),
        external_id=name,
        title=_title(place),
        agent=place.identity.client[:100],
        model=model[:200].replace("\0", ""),
        policy=NEVER_COMPACTS if place.call.mode == OBSERVE else {},
        budget_tokens=_budget(place),
        created_by_id=place.key.created_by_id,
        parent_id=parent.pk if parent is not None else None,
        origin=GATEWAY,
    )
    session, _created = session_create(project_id=place.key.project_id, new=new)
    return session


def _budget(place: Place) -> int | None:
    """Return the budget that the client sets in a header, or else that of the project's gateway settings."""
    sent = budget_of(place.call.headers.get(BUDGET, "").strip())
    if sent is not None:
        return sent
    budget = place.key.project.gateway.get("budget_tokens")
    return budget if isinstance(budget, int) else None


def _title(place: Place) -> str:
    """Return the title of a session that begins with the call."""
    [title], _ = redact([_first_words(place.fields)], redaction=place.redaction)
    return str(title)[:300]


def _first_words(fields: Mapping[str, Any]) -> str:
    """Return the first words of the user, without text that the client inserted into the message."""
    sent = fields.get("messages") or fields.get("input") or fields.get("contents")
    for message in [{"role": "user", "content": sent}] if isinstance(sent, str) else items(sent):
        if message.get("role", "user" if "parts" in message else None) != "user":  # optional in Gemini's
            continue
        content = message.get("content", message.get("parts"))
        texts = [content] if isinstance(content, str) else [text(part.get("text")) for part in items(content)]
        words = [part for part in texts if part.strip() and not _INSERTED.match(part)]
        if words:
            return title_of(words[-1]).replace("\0", "")
    return ""
