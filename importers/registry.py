"""The log formats that can be imported. A new format is one module and one entry in `IMPORTERS`."""

from __future__ import annotations

from .aider import AiderImporter
from .anthropic_messages import AnthropicMessagesImporter
from .atif import AtifImporter
from .base import Importer, LogFile
from .claude_code import ClaudeCodeImporter
from .cline import ClineImporter
from .codex import CodexImporter
from .contextapp import ContextappImporter
from .continue_dev import ContinueImporter
from .copilot import CopilotImporter
from .crush import CrushImporter
from .gemini_cli import GeminiCliImporter
from .goose import GooseImporter
from .inspect_ai import InspectImporter
from .kimi_cli import KimiCliImporter
from .kimi_code import KimiCodeImporter
from .langfuse import LangfuseImporter
from .langsmith import LangSmithImporter
from .mini_swe_agent import MiniSweAgentImporter
from .openai_chat import OpenAIChatImporter
from .openai_responses import OpenAIResponsesImporter
from .opencode import OpenCodeImporter
from .openhands import OpenHandsImporter
from .openhands_events import OpenHandsEventsImporter
from .openhands_sdk import OpenHandsSdkImporter
from .phoenix import PhoenixImporter
from .pi import PiImporter
from .qwen_code import QwenCodeImporter
from .swe_agent import SweAgentImporter
from .tau_bench import Tau2BenchImporter, TauBenchImporter
from .vscode_chat import VSCodeChatImporter
from .zed import ZedImporter

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


def recognize(log: LogFile) -> Importer | None:
    """Return the first importer that recognizes the content of the log, or None."""
    return next((importer for importer in IMPORTERS.values() if importer.recognizes(log)), None)


def known_formats() -> str:
    """Return name and label of each format, one per line."""
    width = max(map(len, IMPORTERS))
    return "\n".join(f"{name:<{width}}  {importer.label}" for name, importer in IMPORTERS.items())
