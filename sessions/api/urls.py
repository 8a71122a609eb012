"""URLs of the API, under /api/v1/."""

from django.urls import path

from sessions.api import (
    blobs,
    comments,
    compactions,
    pins,
    prompt,
    prompts,
    reconcile,
    search,
    sessions,
    tools,
    turns,
    usage,
    webhooks,
)
from sessions.api.imports import views as imports
from sessions.api.memory import current, facts, history, settings

app_name = "api"

_SESSION = "sessions/<str:session_id>/"
_COMPACTION = f"{_SESSION}compactions/<int:number>/"
_MEMORY = f"{_SESSION}memory/"

urlpatterns = [
    path("sessions/", sessions.Sessions.as_view(), name="sessions"),
    path(_SESSION, sessions.SessionView.as_view(), name="session"),
    path(f"{_SESSION}export/", sessions.SessionExport.as_view(), name="session-export"),
    path(f"{_SESSION}turns/", turns.Turns.as_view(), name="turns"),
    path(f"{_SESSION}prompt/", prompt.Prompt.as_view(), name="prompt"),
    path(f"{_SESSION}reconcile/", reconcile.Reconcile.as_view(), name="reconcile"),
    path(_MEMORY, current.Memory.as_view(), name="memory"),
    path(f"{_MEMORY}revisions/", history.MemoryRevisions.as_view(), name="memory-revisions"),
    path(f"{_MEMORY}revisions/<int:number>/", history.MemoryRevisionView.as_view(), name="memory-revision"),
    path(f"{_MEMORY}diff/", history.MemoryDiffs.as_view(), name="memory-diff"),
    path(f"{_MEMORY}timeline/", history.MemorySteps.as_view(), name="memory-timeline"),
    path(f"{_MEMORY}proposals/", facts.Proposals.as_view(), name="memory-proposals"),
    path(f"{_MEMORY}offers/", facts.Offers.as_view(), name="memory-offers"),
    path(f"{_MEMORY}upkeep/", settings.Upkeep.as_view(), name="memory-upkeep"),
    path("memory/facts/", facts.Facts.as_view(), name="memory-facts"),
    path("memory/facts/<str:fact_id>/", facts.FactView.as_view(), name="memory-fact"),
    path("memory/settings/", settings.MemorySettings.as_view(), name="memory-settings"),
    path(f"{_SESSION}compact/", compactions.Compact.as_view(), name="compact"),
    path(f"{_SESSION}compactions/", compactions.Compactions.as_view(), name="compactions"),
    path(
        f"{_SESSION}compactions/export/", compactions.CompactionsExport.as_view(), name="compactions-export"
    ),
    path(_COMPACTION, compactions.CompactionView.as_view(), name="compaction"),
    path(f"{_COMPACTION}revert/", compactions.Revert.as_view(), name="revert"),
    path(f"{_COMPACTION}recap/", compactions.RecapEdit.as_view(), name="recap"),
    path(f"{_SESSION}blobs/<str:handle>/", blobs.Blob.as_view(), name="blob"),
    path(f"{_SESSION}messages/<int:position>/pin/", pins.Pin.as_view(), name="pin"),
    path(f"{_SESSION}comments/", comments.Comments.as_view(), name="comments"),
    path(f"{_SESSION}search/", search.SessionSearch.as_view(), name="search"),
    path(f"{_SESSION}tool_calls/", tools.ToolCalls.as_view(), name="tool_calls"),
    path("search/", search.ProjectSearch.as_view(), name="search-project"),
    path("tools/", tools.Tools.as_view(), name="tools"),
    path("prompts/compact/", prompts.PromptCompaction.as_view(), name="prompt_compact"),
    path("prompts/validate/", prompts.PromptValidation.as_view(), name="validate"),
    path("usage/", usage.Usage.as_view(), name="usage"),
    path("imports/", imports.Imports.as_view(), name="imports"),
    path("imports/<str:import_id>/", imports.ImportView.as_view(), name="import"),
    path("imports/<str:import_id>/sessions/", imports.ImportSessions.as_view(), name="import-sessions"),
    path("webhooks/", webhooks.Webhooks.as_view(), name="webhooks"),
    path("webhooks/<str:webhook_id>/", webhooks.WebhookView.as_view(), name="webhook"),
    path("webhooks/<str:webhook_id>/test/", webhooks.WebhookTest.as_view(), name="webhook-test"),
    path(
        "webhooks/<str:webhook_id>/deliveries/<str:delivery_id>/redeliver/",
        webhooks.WebhookRedelivery.as_view(),
        name="webhook-redelivery",
    ),
]
