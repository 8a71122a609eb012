"""`sessions/{id}/memory/`: working memory, its revisions, and what changed between two of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, extend_schema

from accounts.models import Scope
from compaction.errors import WorkingMemoryError
from compaction.memory import WorkingMemory, churn, diff
from sessions.api import serializers
from sessions.api.cursors import cursor_decode, cursor_encode
from sessions.api.endpoint import Call, Endpoint, answer
from sessions.api.errors import Conflict, InvalidRequest, NotFound
from sessions.api.schema import errors
from sessions.api.serializers import CHURN_REVISIONS, MAX_TOKENS
from sessions.api.sessions import found_or_404, int_param, no_session
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory import memory_latest, memory_page, memory_revision, memory_span, memory_value
from sessions.services.memory import MemoryTooLarge, StaleMemory, memory_patch, memory_warning

_FIELDS = frozenset(field.name for field in fields(WorkingMemory))

_LONGEST_REASON = 500


_ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=[200], description='the revision: `"3"`'
)


class Memory(Endpoint):
    @extend_schema(
        operation_id="memory_get",
        summary="Show the working memory",
        parameters=[_ETAG, OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER)],
        responses={200: serializers.MemoryShown, 304: None, **errors()},
    )
    def get(self, call: Call, session_id: str) -> HttpResponse:
        session = found_or_404(call, session_id)
        latest = memory_latest(session_id=session.pk)
        etag = _etag(latest)
        if call.request.META.get("HTTP_IF_NONE_MATCH") == etag:
            return HttpResponse(status=304, headers={"ETag": etag})
        return answer(memory_json(latest), headers={"ETag": etag})

    @extend_schema(
        operation_id="memory_patch",
        summary="Change the working memory by a merge patch (RFC 7396)",
        parameters=[
            _ETAG,
            OpenApiParameter(
                "If-Match",
                str,
                OpenApiParameter.HEADER,
                required=True,
                description="the ETag of the revision that you have read; `*` for any",
            ),
            OpenApiParameter("author", str, enum=MemoryRevision.Author.values, description="else `harness`"),
            OpenApiParameter("reason", str, description=f"at most {_LONGEST_REASON} characters"),
        ],
        request=serializers.MemoryFields,
        responses={200: serializers.MemoryShown, **errors(400, 412, 413, 415, 422, 428)},
    )
    def patch(self, call: Call, session_id: str) -> HttpResponse:
        expected = _expected(call)
        author, reason = _author(call), _reason(call)
        if unknown := sorted(call.body.keys() - _FIELDS):
            raise InvalidRequest(
                "unknown_field", f"`{unknown[0]}` is no field of the working memory", param=unknown[0]
            )
        session = found_or_404(call, session_id)
        try:
            revision = memory_patch(
                session=session, changes=call.body, author=author, reason=reason, expected=expected
            )
        except StaleMemory as error:
            raise Conflict("precondition_failed", str(error), status=412, param="If-Match") from None
        except MemoryTooLarge as error:
            raise InvalidRequest("memory_too_large", str(error), status=422, param=error.field) from None
        except WorkingMemoryError as error:
            raise InvalidRequest("invalid_field", str(error), param=error.field) from None
        except AgentSession.DoesNotExist:
            no_session(session_id)
        return answer(memory_json(revision), headers={"ETag": _etag(revision)})

    scopes = {"GET": Scope.READ, "PATCH": Scope.PUSH}


class MemoryRevisions(Endpoint):
    @extend_schema(
        operation_id="memory_revisions_list",
        summary="List the revisions of the working memory, newest first",
        parameters=[
            OpenApiParameter("limit", int, description="1 to 200, else 50"),
            OpenApiParameter("cursor", str),
        ],
        responses={200: serializers.MemoryPage, **errors(400)},
    )
    def get(self, call: Call, session_id: str) -> HttpResponse:
        session = found_or_404(call, session_id)
        limit = int_param(call, "limit", default=50, least=1, most=200)
        below = None
        if cursor := call.query.get("cursor"):
            [below] = cursor_decode(cursor, int)
            if not 0 <= below <= MAX_TOKENS:
                raise InvalidRequest("invalid_cursor", "the cursor was not made by this call", param="cursor")
        rows = memory_page(session_id=session.pk, below=below, limit=limit + 1)
        more = cursor_encode(rows[limit - 1].number) if len(rows) > limit else None
        return answer({"data": [memory_json(row) for row in rows[:limit]], "next_cursor": more})

    scopes = {"GET": Scope.READ}


class MemoryRevisionDetail(Endpoint):
    @extend_schema(
        operation_id="memory_revisions_get",
        summary="Show one revision of the working memory",
        responses={200: serializers.MemoryShown, **errors()},
    )
    def get(self, call: Call, session_id: str, number: int) -> HttpResponse:
        session = found_or_404(call, session_id)
        row = memory_revision(session_id=session.pk, number=number) if number <= MAX_TOKENS else None
        if row is None:
            raise _no_revision(number, "number")
        return answer(memory_json(row))

    scopes = {"GET": Scope.READ}


class MemoryDiffs(Endpoint):
    @extend_schema(
        operation_id="memory_diff",
        summary="Show what changed between two revisions of the working memory",
        parameters=[
            OpenApiParameter("from", int, description="0 is the empty memory; else the one before `to`"),
            OpenApiParameter("to", int, description="else the newest"),
        ],
        responses={200: serializers.MemoryDiff, **errors(400)},
    )
    def get(self, call: Call, session_id: str) -> HttpResponse:
        session = found_or_404(call, session_id)
        latest = memory_latest(session_id=session.pk)
        newest = latest.number if latest is not None else 0
        last = int_param(call, "to", default=newest)
        first = int_param(call, "from", default=max(last - 1, 0))
        for name, number in (("from", first), ("to", last)):
            if number > newest:
                raise _no_revision(number, name)
        old, new = (memory_value(memory_revision(session_id=session.pk, number=n)) for n in (first, last))
        low, high = sorted((first, last))
        moved = memory_span(session_id=session.pk, first=max(low, high - CHURN_REVISIONS), last=high)
        verdict, share = churn(moved)
        return answer(
            {
                "from": first,
                "to": last,
                "changes": [
                    {"field": change.field, "added": change.added, "removed": change.removed}
                    for change in diff(old, new)
                ],
                "churn": {"verdict": verdict.value, "share": share},
            }
        )

    scopes = {"GET": Scope.READ}


def memory_json(row: MemoryRevision | None) -> dict[str, Any]:
    memory, tokens = memory_value(row), row.tokens if row is not None else 0
    return {
        "revision": row.number if row is not None else 0,
        "memory": memory.to_json(),
        "tokens": tokens,
        "turn": row and row.turn_index,
        "author": row and row.author,
        "reason": row.reason if row is not None else "",
        "at": row and row.created_at,
        "warning": memory_warning(memory, tokens),
    }


def _etag(row: MemoryRevision | None) -> str:
    return f'"{row.number if row is not None else 0}"'


def _no_revision(number: int, param: str) -> NotFound:
    return NotFound("not_found", f"there is no revision {number}", param=param)


def _expected(call: Call) -> int | None:
    """The revision that the writer has read; None: it takes any."""
    header = call.request.META.get("HTTP_IF_MATCH", "").strip()
    if not header:
        raise InvalidRequest(
            "precondition_required",
            "send the ETag of the memory that you have read as `If-Match`",
            status=428,
            param="If-Match",
        )
    if header == "*":
        return None
    etags = [etag.strip('"') for etag in parse_etags(header)]
    if len(etags) != 1 or not (etags[0].isascii() and etags[0].isdigit() and len(etags[0]) <= 10):
        raise Conflict(
            "precondition_failed", "`If-Match` is the ETag of no revision", status=412, param="If-Match"
        )
    return int(etags[0])


def _author(call: Call) -> str:
    author = call.query.get("author", MemoryRevision.Author.HARNESS)
    if author not in MemoryRevision.Author.values:
        choices = ", ".join(MemoryRevision.Author.values)
        raise InvalidRequest("invalid_field", f"`author` must be one of: {choices}", param="author")
    return author


def _reason(call: Call) -> str:
    reason = call.query.get("reason", "")
    if len(reason) > _LONGEST_REASON or "\0" in reason:
        raise InvalidRequest(
            "invalid_field",
            f"`reason` must be a text of at most {_LONGEST_REASON} characters",
            param="reason",
        )
    return reason
