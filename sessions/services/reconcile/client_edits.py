"""Remove the messages from the prompt that a client has removed from its context, or sent only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compaction.edits import Edit, Op
from compaction.messages import Message as MessageValue
from compaction.planning.memory_edits import memory_edits
from compaction.planning.pipeline import plan_of_edits
from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, Compaction, Message
from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.compactions.message_changes import REMOVED_BY_CLIENT
from sessions.selectors.transcripts.rows import messages_load, spans_of
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.given_edits import plan_of_others
from sessions.services.compactions.lifecycle import compaction_open, compaction_supersede
from sessions.services.compactions.planning import plan_request, view_load
from sessions.services.compactions.snapshots import snapshot_rewrite


def context_remove(*, session: AgentSession, positions: Sequence[int], is_served: bool) -> Compaction:
    """Remove messages that the client removed from its context, in a compaction.

    If the client is served its prompts, the next one contains the working memory, and no thinking that the
    provider would reject without the messages. Other clients have sent their own prompt. Ends a compaction
    in progress, because it was planned for another context. The caller has locked the session.
    """
    compaction_supersede(session=session, reason="the client compacted its own context")
    compaction = compaction_open(session=session, trigger=CLIENT)
    loaded = view_load(session)
    spans = spans_of(positions)
    edits = [
        Edit(strategy=CLIENT, op=Op.EVICT, position=first, end=end - 1, reason=REMOVED_BY_CLIENT)
        for first, end in spans
    ]
    if is_served:
        rest = plan_request(replace(loaded, view=loaded.view.with_edits(edits)), trigger=CLIENT)
        request = plan_request(loaded, trigger=CLIENT)
        plan = plan_of_edits(request, (*edits, *memory_edits(rest)), recap=loaded.previous)
    else:
        plan = plan_of_others(loaded, edits, trigger=CLIENT, recap=loaded.previous)
    compaction_apply(compaction=compaction, loaded=loaded, plan=plan)
    session.refresh_from_db()
    rows = messages_load(session.pk, spans)
    # Not the size of the view: contextapp's own edits do not shorten the client's prompt.
    context = TokenBreakdown(tokens=session.context_components)
    session.context_components = dict(context.subtract(row.value(session.format) for row in rows).tokens)
    session.save(update_fields=["context_components"])
    return compaction


def messages_omit(*, session: AgentSession, positions: Sequence[int], has_new: bool) -> None:
    """Omit messages from later prompts. Locks the session.

    `has_new` states whether the client sends new messages: if not, the prompt after the last turn does not
    contain the messages either.

    A client may omit messages with each call, so this is not a compaction: the edits and the triggers remain
    the same, and a compaction in progress or a prepared one is still applied.
    """
    if not positions:
        return
    session.refresh_from_db(from_queryset=AgentSession.objects.select_for_update())
    messages = [row.value(session.format) for row in messages_load(session.pk, spans_of(positions))]
    omitted = Message.objects.filter(session=session, position__in=positions)
    omitted.update(omitted_from=session.message_count - (not has_new))
    session.omitted_count += len(positions)
    for name in ("context_components", "shown_components"):
        before = TokenBreakdown(tokens=getattr(session, name))
        setattr(session, name, dict(before.subtract(messages).tokens))
    session.save(update_fields=["omitted_count", "context_components", "shown_components"])
    if positions[0] < session.snapshot_end or _may_change_continuation(session, messages):
        snapshot_rewrite(session=session)
        session.refresh_from_db()


def _may_change_continuation(session: AgentSession, messages: Sequence[MessageValue]) -> bool:
    """Return whether omitting the messages may change which messages can follow the prompt."""
    has_tools = any(message.tool_calls or message.tool_results for message in messages)
    return has_tools or session.needs_repair or messages[-1].position == session.message_count - 1
