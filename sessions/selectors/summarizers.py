"""Which models summarise and keep memories for a project, and the clients that ask them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.conf import settings

import pricing
from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Usage

if TYPE_CHECKING:
    from compaction.adapters.anthropic_summarizer import AnthropicSummarizer
    from compaction.adapters.claude import Claude

#: The setting for "no model": no content of the project leaves the server.
OFF = "off"

#: What a model's name may be.
MODEL_NAME = r"^[\w.:/@-]+$"


def summarizer_missing(project: Project) -> str:
    """Return why no model summarizes for the project; "" if one does."""
    if summarizer_model(project) == OFF:
        return "the project has turned off the summarizer model"
    return "" if settings.CONTEXTAPP_ANTHROPIC_API_KEY else "no API key is set"


def summarizer_model(project: Project) -> str:
    """The model that the project names, else the server; "" for the summariser's own default."""
    return project.summarizer_model or settings.CONTEXTAPP_SUMMARIZER_MODEL


@cache
def summarizer(model: str) -> AnthropicSummarizer:
    """One client a process and model: it keeps its connections."""
    # The SDK takes a second to load, which only the workers have to spend.
    from compaction.adapters.anthropic_summarizer import AnthropicSummarizer
    from compaction.adapters.claude import DEFAULT_MODEL

    return AnthropicSummarizer(model=model or DEFAULT_MODEL, **_options())


def reader_missing(project: Project) -> str:
    """Why no model reads for the project's memories; "" where one does."""
    if not project.memory_model:
        return "no model is set"
    if not project.memory_upkeep:
        return "automatic updates are off"
    if summarizer_model(project) == OFF:
        return "the model that summarises is “off”, so nothing of the project leaves the server"
    return summarizer_missing(project)


@cache
def reader(model: str) -> Claude:
    """The client that asks a model what it reads: one a process and model."""
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
    """Loads the vocabulary, the prices and, where there is a key, the SDK; makes no client yet."""
    counter()
    pricing.price("", Usage())
    if settings.CONTEXTAPP_ANTHROPIC_API_KEY:
        import_module("compaction.adapters.anthropic_summarizer")
