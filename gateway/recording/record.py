"""Record a call: find its session, and reconcile the session with the history that the agent sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import DataError, IntegrityError, connection, transaction
from django.db import Error as DatabaseError

from accounts.models import ApiKey, Scope
from compaction.messages import Usage
from gateway.calls import Call
from gateway.providers import PROVIDERS, Answer
from gateway.recording.contents import answer_of, request_of
from gateway.recording.recorder import StoreUnavailable
from gateway.recording.sessions import Place, session_of_call, title_update
from pricing.usage import UsageError, cache_writes_1h, has_input_tokens, usage_read
from redaction import redact
from sessions.models import TurnSource
from sessions.selectors.custom_prices import custom_prices
from sessions.services.calls.match import CallIdentity, turns_by_id
from sessions.services.compactions.rejected_summary import provider_resume
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.push.values import Latency, Push, Target
from sessions.services.reconcile.history import history_reconcile
from sessions.services.reconcile.values import PromptSource, Request, Sent, Status

#: How long before a call its key may have ended: the gateway checks it before it reads the request, and
#: caches the result for some seconds.
_GRACE = timedelta(minutes=1)


class KeyInvalid(LookupError):
    """The API key of a call is unknown, expired or revoked."""


def call_record(call: Call) -> None:
    """Record a call. Raises `StoreUnavailable` if it should be retried later."""
    try:
        _record(call)
    except (DataError, IntegrityError):
        raise
    except DatabaseError as error:
        raise StoreUnavailable(type(error).__name__) from error
    finally:
        connection.close()


def _record(call: Call) -> None:
    answer = answer_of(call)
    if not answer.messages and not answer.usage:
        return  # an error, which the agent retries or reports
    key = key_find(call)
    provider = PROVIDERS[call.provider]
    body, fields = request_of(call)
    identity = provider.identity(call.headers, fields)
    if call.endpoint in provider.side_endpoints:
        identity = replace(identity, is_side=True)
    place = Place.of(call, key, identity, body=body, fields=fields)
    call, answer = _without_secrets(call, provider.resent(call.endpoint, fields, answer), place)
    request = Request(
        body=place.history,
        redaction=place.redaction,
        read=lambda _: _sent(place, answer),
        idempotency_key=f"gateway-{call.id}",
        call=CallIdentity(
            at=datetime.fromtimestamp(call.at, UTC),
            usage=_usage(answer)[0],
            request_id=call.request_id.replace("\0", ""),
            response_id=answer.id.replace("\0", "")[:200],
        ),
        continued=place.continued,
    )
    if place.name is None and _is_recorded(request, key):
        return
    with transaction.atomic():  # no session without a turn remains after an error
        session = session_of_call(place)
        target = Target(key_id=None, project_id=key.project_id, session_id=session.pk)
        reconciled = history_reconcile(target, request)
    if reconciled.turn in {0, 1} and reconciled.status is not Status.SIDE:
        title_update(reconciled.session_id, place, is_first=reconciled.turn == 0)
    provider_resume(session)
    if key.project.memory_upkeep and reconciled.turn is not None:
        memory_update_request(reconciled.session_id)


def _is_recorded(request: Request, key: ApiKey) -> bool:
    """Return whether a call is recorded already, for example if the gateway was stopped meanwhile.

    Named sessions need no check: the key is unique within a session. But the first request of a conversation
    without a name contains no answer, by which its session could be found.
    """
    calls = [request.call] if request.call is not None else []
    found = turns_by_id(project_id=key.project_id, calls=calls)
    return found.filter(idempotency_key=request.idempotency_key).exists()


def _without_secrets(call: Call, answer: Answer, place: Place) -> tuple[Call, Answer]:
    """Redact the names in a response: ids and the model."""
    names = [call.request_id, answer.id, answer.model]
    (request_id, id, model), findings = redact(names, redaction=place.redaction)
    if not findings:
        return call, answer
    return replace(call, request_id=request_id), replace(answer, id=id, model=model)


def _sent(place: Place, answer: Answer) -> Sent:
    call, identity = place.call, place.identity
    usage, one_hour_tokens = _usage(answer)
    push = Push(
        messages=(),
        at=datetime.fromtimestamp(call.at + (call.total_ms or 0) / 1_000, UTC),
        provider=answer.report,
        model=answer.model.replace("\0", "")[:200],
        usage=usage,
        cache_write_1h_tokens=one_hour_tokens,
        latency=Latency(first_token_ms=call.first_token_ms, duration_ms=call.total_ms),
        prices=custom_prices(place.key.project),
        source=TurnSource.GATEWAY,
        prompt_estimate=call.forwarded_estimate,
        has_other_prompt=call.has_other_prompt,
        is_repaired=call.is_repaired,
    )
    return Sent(
        push=push,
        answers=answer.messages,
        is_compacted=identity.is_compacted,
        is_side=identity.is_side,
        caller=place.caller,
        is_named=place.name is not None,
        prompt_source=_source(call),
    )


def _source(call: Call) -> PromptSource | None:
    """Return where the prompt is from that was forwarded, None if it had no edits."""
    if call.forwarded_from is None:
        return None
    session_id, compaction = call.forwarded_from
    return PromptSource(UUID(session_id), compaction)


def _usage(answer: Answer) -> tuple[Usage | None, int]:
    """Return the usage of an answer and its cache-write tokens of one hour; None and 0 if it is invalid."""
    if not answer.usage or not has_input_tokens(answer.usage):
        return None, 0
    try:
        return usage_read(answer.usage), cache_writes_1h(answer.usage)
    except UsageError:
        return None, 0


def key_find(call: Call) -> ApiKey:
    """Return the API key of a call, even if it has expired or was revoked since. Raises `KeyInvalid`."""
    proof, called = call.key, datetime.fromtimestamp(call.at, UTC) - _GRACE
    key = ApiKey.objects.select_related("project").filter(prefix=proof.prefix).first()
    if key is None or bytes(key.hash).hex() != proof.hash or Scope.PUSH not in key.scopes:
        raise KeyInvalid(proof.prefix)
    if any(ended is not None and ended <= called for ended in (key.revoked_at, key.expires_at)):
        raise KeyInvalid(proof.prefix)
    return key
