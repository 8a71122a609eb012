"""URLs of the pages of a session."""

from __future__ import annotations

from django.urls import path

from sessions.pages.session import (
    chart,
    comments,
    compaction,
    compactions,
    detail,
    export,
    labels,
    live,
    parts,
    past_prompt,
    pins,
    prompt,
    raw,
    tree,
    turn,
)

_SESSION = "p/<slug:slug>/sessions/<uuid:id>/"
_TURN = f"{_SESSION}turns/<int:turn>/"
_MESSAGE = f"{_SESSION}messages/<int:position>/"
_COMMENT = f"{_SESSION}comments/<int:number>/"
_COMPACTIONS = f"{_SESSION}compactions/"
_COMPACTION = f"{_COMPACTIONS}<int:number>/"

urlpatterns = [
    path(_SESSION, detail.session_detail, name="session"),
    path(f"{_SESSION}sub-agents/", tree.session_sub_agents, name="session_sub_agents"),
    path(f"{_SESSION}live/", live.session_live, name="session_live"),
    path(f"{_SESSION}health/", live.session_health, name="session_health"),
    path(f"{_SESSION}chart/", chart.session_chart, name="session_chart"),
    path(f"{_SESSION}chart/table/", chart.session_chart_table, name="session_chart_table"),
    path(f"{_SESSION}prompt/", prompt.session_prompt, name="session_prompt"),
    path(f"{_SESSION}raw/", raw.session_raw, name="session_raw"),
    path(f"{_SESSION}labels/", labels.session_labels, name="session_labels"),
    path(f"{_SESSION}star/", labels.session_star_change, name="session_star"),
    path(f"{_SESSION}export.<str:format>", export.session_export, name="session_export"),
    path(f"{_MESSAGE}raw/", raw.session_raw_message, name="session_raw_message"),
    path(f"{_MESSAGE}pin/", pins.session_pin, name="session_pin"),
    path(_TURN, turn.session_turn, name="session_turn"),
    path(f"{_TURN}comments/", comments.turn_comments, name="session_turn_comments"),
    path(_COMMENT, comments.session_comment, name="session_comment"),
    path(f"{_COMMENT}delete/", comments.session_comment_delete, name="session_comment_delete"),
    path(f"{_TURN}against/", turn.session_turn_diff, name="session_turn_diff"),
    path(f"{_TURN}seen/", past_prompt.session_past_prompt, name="session_past_prompt"),
    path(f"{_TURN}seen/preamble/", past_prompt.session_past_prompt_system, name="session_past_prompt_system"),
    path(f"{_TURN}seen/json/", past_prompt.session_past_prompt_json, name="session_past_prompt_json"),
    path(
        f"{_TURN}seen/<int:position>/",
        past_prompt.session_past_prompt_entry,
        name="session_past_prompt_entry",
    ),
    path(_COMPACTIONS, compactions.session_compactions, name="session_compactions"),
    path(f"{_COMPACTIONS}export/", compactions.session_compactions_export, name="session_compactions_export"),
    path(f"{_COMPACTIONS}preview/", compactions.session_compact_preview, name="session_compact_preview"),
    path(f"{_SESSION}policy/", compactions.session_policy, name="session_policy"),
    path(f"{_SESSION}budget/", compactions.session_budget, name="session_budget"),
    path(f"{_SESSION}compact/", compactions.session_compact, name="session_compact"),
    path(f"{_COMPACTION}revert/", compactions.session_revert, name="session_revert"),
    path(f"{_COMPACTION}reapply/", compactions.session_reapply, name="session_reapply"),
    path(_COMPACTION, compaction.session_compaction, name="session_compaction"),
    path(f"{_COMPACTION}diff/", compaction.session_compaction_diff, name="session_compaction_diff"),
    path(
        f"{_COMPACTION}edits/<int:ordinal>/",
        compaction.session_compaction_edit,
        name="session_compaction_edit",
    ),
    path(f"{_COMPACTION}recap/", compaction.session_recap, name="session_recap"),
    path(f"{_MESSAGE}parts/<int:part>/", parts.session_text, name="session_text"),
    path(f"{_MESSAGE}parts/<int:part>/images/<int:index>/", parts.session_image, name="session_image"),
]
