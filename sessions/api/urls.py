"""URLs of the API, under /api/v1/."""

from django.urls import path

from sessions.api import (
    blobs,
    comments,
    compactions,
    pins,
    prompt,
    prompt_compaction,
    recaps,
    reconcile,
    search,
    session_export,
    sessions,
    tools,
    turns,
    usage,
    validate,
    webhooks,
)
from sessions.api.imports import views as imports
from sessions.api.memory import current, facts, history, settings

app_name = "api"

urlpatterns = [
    path("sessions/", sessions.Sessions.as_view(), name="sessions"),
    path("sessions/<str:session_id>/", sessions.SessionView.as_view(), name="session"),
    path("sessions/<str:session_id>/export/", session_export.SessionExport.as_view(), name="session-export"),
    path("sessions/<str:session_id>/turns/", turns.Turns.as_view(), name="turns"),
    path("sessions/<str:session_id>/prompt/", prompt.Prompt.as_view(), name="prompt"),
    path("sessions/<str:session_id>/reconcile/", reconcile.Reconcile.as_view(), name="reconcile"),
    path("sessions/<str:session_id>/memory/", current.Memory.as_view(), name="memory"),
    path(
        "sessions/<str:session_id>/memory/revisions/",
        history.MemoryRevisions.as_view(),
        name="memory-revisions",
    ),
    path(
        "sessions/<str:session_id>/memory/revisions/<int:number>/",
        history.MemoryRevisionView.as_view(),
        name="memory-revision",
    ),
    path("sessions/<str:session_id>/memory/diff/", history.MemoryDiffs.as_view(), name="memory-diff"),
    path("sessions/<str:session_id>/memory/timeline/", history.MemorySteps.as_view(), name="memory-timeline"),
    path("sessions/<str:session_id>/memory/proposals/", facts.Proposals.as_view(), name="memory-proposals"),
    path("sessions/<str:session_id>/memory/offers/", facts.Offers.as_view(), name="memory-offers"),
    path("sessions/<str:session_id>/memory/upkeep/", settings.Upkeep.as_view(), name="memory-upkeep"),
    path("memory/facts/", facts.Facts.as_view(), name="memory-facts"),
    path("memory/facts/<str:fact_id>/", facts.FactView.as_view(), name="memory-fact"),
    path("memory/settings/", settings.MemorySettings.as_view(), name="memory-settings"),
    path("sessions/<str:session_id>/compact/", compactions.Compact.as_view(), name="compact"),
    path("sessions/<str:session_id>/compactions/", compactions.Compactions.as_view(), name="compactions"),
    path(
        "sessions/<str:session_id>/compactions/export/",
        compactions.CompactionsExport.as_view(),
        name="compactions-export",
    ),
    path(
        "sessions/<str:session_id>/compactions/<int:number>/",
        compactions.CompactionView.as_view(),
        name="compaction",
    ),
    path(
        "sessions/<str:session_id>/compactions/<int:number>/revert/",
        compactions.Revert.as_view(),
        name="revert",
    ),
    path(
        "sessions/<str:session_id>/compactions/<int:number>/recap/",
        recaps.RecapEdit.as_view(),
        name="recap",
    ),
    path("sessions/<str:session_id>/blobs/<str:handle>/", blobs.Blob.as_view(), name="blob"),
    path(
        "sessions/<str:session_id>/messages/<int:position>/pin/",
        pins.Pin.as_view(),
        name="pin",
    ),
    path("sessions/<str:session_id>/comments/", comments.Comments.as_view(), name="comments"),
    path("sessions/<str:session_id>/search/", search.SessionSearch.as_view(), name="search"),
    path("sessions/<str:session_id>/tool_calls/", tools.ToolCalls.as_view(), name="tool_calls"),
    path("search/", search.ProjectSearch.as_view(), name="search-project"),
    path("tools/", tools.Tools.as_view(), name="tools"),
    path("prompts/compact/", prompt_compaction.PromptCompaction.as_view(), name="prompt_compact"),
    path("prompts/validate/", validate.Validate.as_view(), name="validate"),
    path("usage/", usage.Usage.as_view(), name="usage"),
    path("imports/", imports.Imports.as_view(), name="imports"),
    path("imports/<str:import_id>/", imports.ImportView.as_view(), name="import"),
    path("imports/<str:import_id>/sessions/", imports.ImportSessions.as_view(), name="import-sessions"),
    path("webhooks/", webhooks.Webhooks.as_view(), name="webhooks"),
    path("webhooks/<str:webhook_id>/", webhooks.WebhookView.as_view(), name="webhook"),
]
