"""Types of API responses. Responses may contain more fields than are listed here."""

from contextapp_client.types.common import BilledTokens, Format, JsonObject, Positions, PromptSize, Redacted
from contextapp_client.types.imports import Import, ImportedSession, ImportProgress
from contextapp_client.types.memory import Fact, Memory, MemoryFields, MemoryItem, NewFact
from contextapp_client.types.prompts import (
    CompactedPrompt,
    CompactionRecord,
    ManifestEntry,
    MessageWindow,
    Violation,
)
from contextapp_client.types.sessions import (
    Calibration,
    Comment,
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
from contextapp_client.types.webhooks import Delivery, Webhook, WebhookEvent, WebhookFormat

__all__ = [
    "BilledTokens",
    "Calibration",
    "Comment",
    "CompactedPrompt",
    "CompactionRecord",
    "Content",
    "Delivery",
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
    "NewFact",
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
    "Webhook",
    "WebhookEvent",
    "WebhookFormat",
]
