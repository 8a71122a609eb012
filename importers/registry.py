"""The known log formats, in the order in which they are tried. A new format is one more line here."""

from __future__ import annotations

from .base import Importer, LogFile
from .claude_code import ClaudeCodeImporter
from .codex import CodexImporter
from .gemini_cli import GeminiCliImporter
from .mini_swe_agent import MiniSweAgentImporter
from .openai_chat import OpenAIChatImporter
from .openhands import OpenHandsImporter
from .openhands_events import OpenHandsEventsImporter
from .pi import PiImporter
from .swe_agent import SweAgentImporter
from .tau_bench import Tau2BenchImporter, TauBenchImporter

#: Formats that any chat JSON resembles come last.
IMPORTERS: tuple[Importer, ...] = (
    ClaudeCodeImporter(),
    CodexImporter(),
    PiImporter(),
    OpenHandsImporter(),
    OpenHandsEventsImporter(),
    SweAgentImporter(),
    GeminiCliImporter(),
    MiniSweAgentImporter(),
    TauBenchImporter(),
    Tau2BenchImporter(),
    OpenAIChatImporter(),
)


def recognise(log: LogFile) -> Importer | None:
    """The importer that reads this log, by its content; None where no format fits."""
    return next((importer for importer in IMPORTERS if importer.recognises(log)), None)


def importer_named(name: str) -> Importer:
    """The importer with this name. Raises KeyError."""
    return {importer.name: importer for importer in IMPORTERS}[name]


def known_formats() -> str:
    """The known formats, a line each: what to say where none fits."""
    width = max(len(importer.name) for importer in IMPORTERS)
    return "\n".join(f"{importer.name:<{width}}  {importer.label}" for importer in IMPORTERS)
