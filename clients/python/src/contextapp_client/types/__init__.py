"""Types of API responses. Responses may contain more fields than are listed here."""

from contextapp_client.types.common import BilledTokens, Format, JsonObject, Positions, PromptSize, Redacted
from contextapp_client.types.imports import Import, ImportedSession, ImportProgress
from contextapp_client.types.memory import Fact, Memory, MemoryFields, MemoryItem
from contextapp_client.types.prompts import (
    CompactedPrompt,
    CompactionRecord,
    ManifestEntry,
    MessageWindow,
    Violation,
)
from contextapp_client.types.sessions import (
    Calibration,
    Content,
    FoundSession,
    Latency,
    Match,
    NewSession,
    OutputSpike,
    PushResult,
    Reconciliation,
    SearchResult,
    SessionInfo,
    ToolResult,
    TriggeredCompaction,
    Turn,
)
from contextapp_client.types.usage import Usage, UsageRow

__all__ = [
    "BilledTokens",
    "Calibration",
    "CompactedPrompt",
    "CompactionRecord",
    "Content",
    "Fact",
    "Format",
    "FoundSession",
    "Import",
    "ImportProgress",
    "ImportedSession",
    "JsonObject",
    "Latency",
    "ManifestEntry",
    "Match",
    "Memory",
    "MemoryFields",
    "MemoryItem",
    "MessageWindow",
    "NewSession",
    "OutputSpike",
    "Positions",
    "PromptSize",
    "PushResult",
    "Reconciliation",
    "Redacted",
    "SearchResult",
    "SessionInfo",
    "ToolResult",
    "TriggeredCompaction",
    "Turn",
    "Usage",
    "UsageRow",
    "Violation",
]
