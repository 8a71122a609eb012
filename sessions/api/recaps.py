"""`sessions/{id}/compactions/{number}/recap/`: replace the text of a recap."""

from __future__ import annotations

from django.http import HttpResponse

from sessions.api.compactions import compaction_or_404, detail_json
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField, InvalidRequest, sentence
from sessions.api.lookup import session_or_404
from sessions.api.schema import operation
from sessions.api.serializers import compactions as serializers
from sessions.services.compactions.lifecycle import CompactionInProgress
from sessions.services.compactions.recap_edit import EmptyRecap, NotEditable, RecapTooLarge, recap_edit

_OPEN = "A compaction of this session is in progress. Try again when it has finished."


class RecapEdit(Endpoint):
    @operation(
        "recap_edit",
        "Edit the recap of a compaction",
        serializers.CompactionDetail,
        request=serializers.RecapText,
        errors=(409, 413, 422),
    )
    def post(self, call: ApiCall, session_id: str, number: int) -> HttpResponse:
        """Replaces the recap with your text, which must have the recap's sections (`## Decisions`,
        `## Entities`, `## Facts`, `## Open items`) with `- ` items. Returns the new compaction, with trigger
        `edit`, that applies the text. Revert it to restore the previous recap."""
        session = session_or_404(call, session_id)
        compaction_or_404(session, number)
        text = call.validated(serializers.RecapText)["text"]
        try:
            compaction = recap_edit(session=session, number=number, text=text, actor=call.actor)
        except CompactionInProgress:
            raise Conflict("compaction_open", _OPEN) from None
        except NotEditable as error:
            raise Conflict("not_editable", sentence(error)) from None
        except EmptyRecap as error:
            raise InvalidField("text", sentence(error)) from None
        except RecapTooLarge as error:
            raise InvalidRequest("text_too_long", sentence(error), param="text", status=422) from None
        return json_response(detail_json(compaction))
