"""`sessions/{id}/memory/`: working memory as it is now, and changing it."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter

from accounts.models import Scope
from compaction.errors import WorkingMemoryError
from compaction.memory import Author
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidRequest
from sessions.api.lookup import raise_session_not_found, session_or_404
from sessions.api.memory.shapes import etag_of, memory_json
from sessions.api.parameters import int_param
from sessions.api.schema import error_responses, operation
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory import memory_latest
from sessions.services.memory.writing import MemoryTooLarge, PersonsItem, StaleMemory, Writer, memory_patch

_LONGEST_REASON = 500


_ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=[200], description='the revision: `"3"`'
)


class Memory(Endpoint):
    @operation(
        operation_id="memory_get",
        summary="Show the working memory",
        parameters=[_ETAG, OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER)],
        responses={200: serializers.MemoryShown, 304: None, **error_responses()},
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        session = session_or_404(call, session_id)
        latest = memory_latest(session_id=session.pk)
        etag = etag_of(latest)
        if call.request.META.get("HTTP_IF_NONE_MATCH") == etag:
            return HttpResponse(status=304, headers={"ETag": etag})
        return json_response(memory_json(latest), headers={"ETag": etag})

    @operation(
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
            OpenApiParameter("turn", int, description="the turn that it was learnt from, else the last one"),
            OpenApiParameter("message", int, description="the message that it was learnt from, by position"),
        ],
        request=serializers.MemoryFields,
        responses={200: serializers.MemoryShown, **error_responses(400, 409, 412, 413, 415, 422, 428)},
    )
    def patch(self, call: ApiCall, session_id: str) -> HttpResponse:
        expected, writer = _expected(call), _writer(call)
        session = session_or_404(call, session_id)
        try:
            revision = memory_patch(session=session, changes=call.body, writer=writer, expected=expected)
        except StaleMemory as error:
            raise Conflict("precondition_failed", str(error), status=412, param="If-Match") from None
        except MemoryTooLarge as error:
            raise InvalidRequest("memory_too_large", str(error), status=422, param=error.field) from None
        except PersonsItem as error:
            raise Conflict("written_by_a_person", str(error), param=error.field) from None
        except WorkingMemoryError as error:
            known = "unknown_field" if "no such field" in str(error) else "invalid_field"
            raise InvalidRequest(known, str(error), param=error.field) from None
        except AgentSession.DoesNotExist:
            raise_session_not_found(session_id)
        return json_response(memory_json(revision), headers={"ETag": etag_of(revision)})

    scopes = {"GET": Scope.READ, "PATCH": Scope.PUSH}


def _expected(call: ApiCall) -> int | None:
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


def _writer(call: ApiCall) -> Writer:
    return Writer(
        author=Author(_author(call)),
        reason=_reason(call),
        turn=_place(call, "turn"),
        position=_place(call, "message"),
    )


def _place(call: ApiCall, name: str) -> int | None:
    return int_param(call, name, default=0) if name in call.query else None


def _author(call: ApiCall) -> str:
    author = call.query.get("author", MemoryRevision.Author.HARNESS)
    if author not in MemoryRevision.Author.values:
        choices = ", ".join(MemoryRevision.Author.values)
        raise InvalidRequest("invalid_field", f"`author` must be one of: {choices}", param="author")
    return author


def _reason(call: ApiCall) -> str:
    reason = call.query.get("reason", "")
    if len(reason) > _LONGEST_REASON or "\0" in reason:
        raise InvalidRequest(
            "invalid_field",
            f"`reason` must be a text of at most {_LONGEST_REASON} characters",
            param="reason",
        )
    return reason
