"""The models that summarize and extract memory for a project, and their clients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.conf import settings

import pricing
from accounts.models import Project
from compaction.messages import Usage

if TYPE_CHECKING:
    from compaction.adapters.anthropic_summarizer import AnthropicSummarizer
    from compaction.adapters.claude import Claude

#: The setting for "no model": no content of the project leaves the server.
OFF = "off"

#: Regular expression of valid model names.
MODEL_NAME = r"^[\w.:/@-]+$"


def summarizer_missing(project: Project) -> str:
    """Return why no model summarizes for the project; "" if one does."""
    if summarizer_model(project) == OFF:
        return "the project has turned off the summarizer model"
    return "" if settings.CONTEXTAPP_ANTHROPIC_API_KEY else "the server has no Anthropic API key"


def summarizer_is_expected(project: Project) -> bool:
    """Return whether a model should write recaps: an API key or a model is set, and models are not off."""
    model = summarizer_model(project)
    return model != OFF and bool(model or settings.CONTEXTAPP_ANTHROPIC_API_KEY)


def is_soft_trigger_used(policy: Mapping[str, Any], project: Project) -> bool:
    """Return whether the soft trigger is used under a stored policy: a model summarizes, or it sets `soft`.

    Without a model the hard trigger does the same work later and therefore less often: 0.47 of the raw input
    cost against 0.57 on recorded sessions (docs/benchmarks.md).
    """
    return "soft" in policy or not summarizer_missing(project)


def is_soft_trigger_possible(policy: Mapping[str, Any]) -> bool:
    """Return whether the soft trigger may be used, in a project whose settings are not read."""
    return "soft" in policy or bool(settings.CONTEXTAPP_ANTHROPIC_API_KEY)


def summarizer_model(project: Project) -> str:
    """Return the model that the project or else the server sets, or "" for the summarizer's default."""
    return project.summarizer_model or settings.CONTEXTAPP_SUMMARIZER_MODEL


@cache
def summarizer(model: str) -> AnthropicSummarizer:
    """Return the client of a model. There is one per process, because it keeps its connections open."""
    # Imported here because the SDK takes a second to load and only the workers need it.
    from compaction.adapters.anthropic_summarizer import AnthropicSummarizer
    from compaction.adapters.claude import DEFAULT_MODEL

    return AnthropicSummarizer(model=model or DEFAULT_MODEL, **_options())


def reader_missing(project: Project) -> str:
    """Return why no model extracts memory for the project, or "" if one does."""
    if not project.memory_model:
        return "no model is set"
    if not project.memory_upkeep:
        return "automatic updates are off"
    if summarizer_model(project) == OFF:
        return "the summarizer model is “off”, so no content of the project leaves the server"
    return summarizer_missing(project)


@cache
def reader(model: str) -> Claude:
    """Return the client of a memory extraction model. There is one per process."""
    from compaction.adapters.claude import Claude

    return Claude(model=model, **_options())


def _options() -> dict[str, Any]:
    return {
        "api_key": settings.CONTEXTAPP_ANTHROPIC_API_KEY,
        "base_url": settings.CONTEXTAPP_ANTHROPIC_BASE_URL,
        "timeout": settings.CONTEXTAPP_SUMMARIZER_TIMEOUT,
        "total_timeout": settings.CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT,
        "backoff": settings.CONTEXTAPP_SUMMARIZER_BACKOFF,
    }


def preload() -> None:
    """Load the prices and, if there is an API key, the SDK. Creates no client."""
    pricing.price("", Usage())
    if settings.CONTEXTAPP_ANTHROPIC_API_KEY:
        import_module("compaction.adapters.anthropic_summarizer")
