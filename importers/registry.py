"""The log formats that can be imported. A new format is one module and one entry in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Iterator

from importers.base import Damage, ImportedSession, Importer, LogFile
from importers.formats.aider import AiderImporter
from importers.formats.amp import AmpImporter
from importers.formats.anthropic_messages import AnthropicMessagesImporter
from importers.formats.atif import AtifImporter
from importers.formats.claude_code import ClaudeCodeImporter
from importers.formats.cline import ClineImporter
from importers.formats.codex import CodexImporter
from importers.formats.contextapp import ContextappImporter
from importers.formats.continue_dev import ContinueImporter
from importers.formats.copilot import CopilotImporter
from importers.formats.crush import CrushImporter
from importers.formats.gemini_cli import GeminiCliImporter
from importers.formats.goose import GooseImporter
from importers.formats.inspect_ai import InspectImporter
from importers.formats.kimi_cli import KimiCliImporter
from importers.formats.kimi_code import KimiCodeImporter
from importers.formats.langfuse import LangfuseImporter
from importers.formats.langsmith import LangSmithImporter
from importers.formats.mini_swe_agent import MiniSweAgentImporter
from importers.formats.openai_chat import OpenAIChatImporter
from importers.formats.openai_responses import OpenAIResponsesImporter
from importers.formats.opencode import OpenCodeImporter
from importers.formats.openhands import OpenHandsImporter
from importers.formats.openhands_events import OpenHandsEventsImporter
from importers.formats.openhands_sdk import OpenHandsSdkImporter
from importers.formats.phoenix import PhoenixImporter
from importers.formats.pi import PiImporter
from importers.formats.qwen_code import QwenCodeImporter
from importers.formats.swe_agent import SweAgentImporter
from importers.formats.tau_bench import Tau2BenchImporter, TauBenchImporter
from importers.formats.vscode_chat import VSCodeChatImporter
from importers.formats.zed import ZedImporter
from importers.jsonlines import MALFORMED

#: Importers by name, in the order in which they are tried. Formats that resemble others come last.
IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        InspectImporter(),
        ContextappImporter(),
        QwenCodeImporter(),
        ClaudeCodeImporter(),
        CodexImporter(),
        CopilotImporter(),
        VSCodeChatImporter(),
        PiImporter(),
        AmpImporter(),
        OpenCodeImporter(),
        ClineImporter(),
        ContinueImporter(),
        GooseImporter(),
        CrushImporter(),
        ZedImporter(),
        KimiCliImporter(),
        KimiCodeImporter(),
        LangfuseImporter(),
        LangSmithImporter(),
        PhoenixImporter(),
        OpenHandsImporter(),
        OpenHandsSdkImporter(),
        OpenHandsEventsImporter(),
        SweAgentImporter(),
        GeminiCliImporter(),
        AtifImporter(),
        MiniSweAgentImporter(),
        TauBenchImporter(),
        Tau2BenchImporter(),
        OpenAIResponsesImporter(),
        AnthropicMessagesImporter(),
        OpenAIChatImporter(),
        AiderImporter(),
    )
}

#: Formats whose sessions are imported even without turns, because a user created them.
_MAY_BE_EMPTY = (ContextappImporter.name,)


def recognize(log: LogFile) -> Importer | None:
    """Return the first importer that recognizes the content of the log, or None."""
    return next((importer for importer in IMPORTERS.values() if importer.recognizes(log)), None)


def log_items(importer: Importer, log: LogFile) -> Iterator[ImportedSession | Damage]:
    """Yield the sessions of a log, except those without turns, and its damaged parts.

    An unexpected structure is reported as damage, not raised.
    """
    try:
        for item in importer.read(log):
            if isinstance(item, Damage) or item.turns or importer.name in _MAY_BE_EMPTY:
                yield item
    except MALFORMED as error:
        reason = f"the rest cannot be read as {importer.name}: {type(error).__name__}: {error}"
        yield Damage(file=log.name, line=1, reason=reason)


def known_formats() -> str:
    """Return name and label of each format, one per line."""
    width = max(map(len, IMPORTERS))
    return "\n".join(f"{name:<{width}}  {importer.label}" for name, importer in IMPORTERS.items())
