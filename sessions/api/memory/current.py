"""`sessions/{id}/memory/`: read and change the current working memory."""

from __future__ import annotations

import re

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from compaction.errors import WorkingMemoryError
from compaction.memory.origins import Author
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField, InvalidRequest, sentence
from sessions.api.lookup import raise_session_not_found, session_or_404
from sessions.api.memory.shapes import etag_of, memory_error, memory_json
from sessions.api.parameters import choice_param, int_param, int_parameter
from sessions.api.prompt import etag_matches
from sessions.api.schema import operation
from sessions.api.serializers import memory as serializers
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory.revisions import memory_latest, memory_schema
from sessions.services.memory.revisions import (
    MemoryTooLarge,
    ProtectedItem,
    StaleMemory,
    Writer,
    memory_patch,
)

_MAX_REASON = 500

#: The `ETag` of a revision, also as compressing proxies change it: nginx makes it weak, Caddy adds `-gzip`.
_REVISION_ETAG = re.compile(r'(?:W/)?"([0-9]{1,10})(?:-[a-z]+)?"')

_ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=[200], description='The revision, such as `"3"`.'
)


class Memory(Endpoint):
    @operation(
        "memory_get",
        "Retrieve the working memory",
        parameters=[
            _ETAG,
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="An `ETag`. If it is still current, the response is 304.",
            ),
        ],
        responses={200: serializers.MemoryRevision, 304: None},
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the latest revision, or revision 0 with empty fields if nothing was written yet."""
        session = session_or_404(call, session_id)
        latest = memory_latest(session_id=session.pk)
        etag = etag_of(latest)
        if etag_matches(call.request.META, etag):
            return HttpResponse(status=304, headers={"ETag": etag})
        return json_response(memory_json(latest), headers={"ETag": etag})

    @operation(
        "memory_patch",
        "Update the working memory",
        serializers.MemoryRevision,
        parameters=[
            _ETAG,
            OpenApiParameter(
                "If-Match",
                {"type": "string", "pattern": r'^(\*|"[0-9]{1,10}")$'},
                OpenApiParameter.HEADER,
                required=True,
                description="The `ETag` of the revision that your change is based on, or `*` for any.",
            ),
            OpenApiParameter(
                "author",
                str,
                enum=MemoryRevision.Author.values,
                description="Who makes the change. Defaults to `harness`.",
            ),
            OpenApiParameter(
                "reason",
                {"type": "string", "maxLength": _MAX_REASON, "pattern": r"^[^\x00]*$"},
                description=f"Reason for the change, at most {_MAX_REASON} characters.",
            ),
            int_parameter("turn", "Turn from which the new items come. Defaults to the last turn."),
            int_parameter("message", "Position of the message from which the new items come."),
        ],
        request=serializers.MemoryFields,
        errors=(409, 412, 422, 428),
    )
    def patch(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Applies a JSON merge patch (RFC 7396): each given field replaces the stored one, and `null` clears
        it. Items that a person wrote can only be changed with `author=person`."""
        expected, writer = _expected(call), _writer(call)
        session = session_or_404(call, session_id)
        try:
            revision = memory_patch(session=session, changes=call.body, writer=writer, expected=expected)
        except StaleMemory as error:
            raise Conflict("precondition_failed", sentence(error), status=412, param="If-Match") from None
        except (MemoryTooLarge, ProtectedItem, WorkingMemoryError) as error:
            raise memory_error(error, known=memory_schema(project_id=session.project_id).names) from None
        except AgentSession.DoesNotExist:
            raise_session_not_found(session_id)
        return json_response(memory_json(revision), headers={"ETag": etag_of(revision)})


def _expected(call: ApiCall) -> int | None:
    """Return the revision on which the change is based, or None for any."""
    header = call.request.META.get("HTTP_IF_MATCH", "").strip()
    if not header:
        raise InvalidRequest(
            "precondition_required",
            "`If-Match` is required: send the `ETag` of the memory that you read, or `*`.",
            status=428,
            param="If-Match",
        )
    if header == "*":
        return None
    revision = _REVISION_ETAG.fullmatch(header)
    if revision is None:
        raise Conflict(
            "precondition_failed",
            '`If-Match` must be a single `ETag` of a revision, such as `"3"`.',
            status=412,
            param="If-Match",
        )
    return int(revision[1])


def _writer(call: ApiCall) -> Writer:
    return Writer(
        author=Author(choice_param(call, "author", MemoryRevision.Author.values) or Author.HARNESS),
        reason=_reason(call),
        turn=_optional_int(call, "turn"),
        position=_optional_int(call, "message"),
    )


def _optional_int(call: ApiCall, name: str) -> int | None:
    return int_param(call, name, default=0) if name in call.query else None


def _reason(call: ApiCall) -> str:
    reason = call.query.get("reason", "")
    if len(reason) > _MAX_REASON or "\0" in reason:
        raise InvalidField("reason", f"`reason` must be at most {_MAX_REASON} characters without NUL.")
    return reason
