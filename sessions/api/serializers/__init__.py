"""Request and response bodies, one module per resource: for validation and the OpenAPI schema."""

from sessions.api.serializers.checks import ValidateRequest, ValidationResult
from sessions.api.serializers.comments import CommentPage
from sessions.api.serializers.compactions import (
    CompactionDetail,
    CompactionPage,
    CompactRequest,
    ExportedCompaction,
    ProviderSummary,
    RecapText,
)
from sessions.api.serializers.contents import (
    Content,
    Pinned,
    ProjectSearchPage,
    SearchPage,
    ToolCall,
    ToolResult,
    Tools,
)
from sessions.api.serializers.fields import MAX_TOKENS, Error
from sessions.api.serializers.imports import (
    ImportChange,
    ImportedSessionList,
    ImportJobDetail,
    ImportJobList,
    ImportUpload,
)
from sessions.api.serializers.memory import (
    CHURN_REVISIONS,
    MemoryDiff,
    MemoryFact,
    MemoryFactDecision,
    MemoryFactList,
    MemoryFactPage,
    MemoryFields,
    MemoryImport,
    MemoryPage,
    MemoryProposal,
    MemoryRevision,
    MemorySettings,
    MemoryTimeline,
    MemoryUpkeep,
)
from sessions.api.serializers.prompts import CompactedPrompt, PromptCompactRequest
from sessions.api.serializers.reconcile import HistorySent, ReconciledPrompt
from sessions.api.serializers.sessions import (
    ExportedLine,
    Session,
    SessionChange,
    SessionCreate,
    SessionCreated,
    SessionPage,
)
from sessions.api.serializers.turns import Prompt, TurnPage, TurnPush, TurnPushed
from sessions.api.serializers.usage import Usage
from sessions.api.serializers.validation import validated
from sessions.api.serializers.webhooks import (
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookDetail,
    WebhookList,
)

__all__ = [
    "CHURN_REVISIONS",
    "MAX_TOKENS",
    "CommentPage",
    "CompactRequest",
    "CompactedPrompt",
    "CompactionDetail",
    "CompactionPage",
    "Content",
    "Error",
    "ExportedCompaction",
    "ExportedLine",
    "HistorySent",
    "ImportChange",
    "ImportJobDetail",
    "ImportJobList",
    "ImportUpload",
    "ImportedSessionList",
    "MemoryDiff",
    "MemoryFact",
    "MemoryFactDecision",
    "MemoryFactList",
    "MemoryFactPage",
    "MemoryFields",
    "MemoryImport",
    "MemoryPage",
    "MemoryProposal",
    "MemoryRevision",
    "MemorySettings",
    "MemoryTimeline",
    "MemoryUpkeep",
    "Pinned",
    "ProjectSearchPage",
    "Prompt",
    "PromptCompactRequest",
    "ProviderSummary",
    "RecapText",
    "ReconciledPrompt",
    "SearchPage",
    "Session",
    "SessionChange",
    "SessionCreate",
    "SessionCreated",
    "SessionPage",
    "ToolCall",
    "ToolResult",
    "Tools",
    "TurnPage",
    "TurnPush",
    "TurnPushed",
    "Usage",
    "ValidateRequest",
    "ValidationResult",
    "WebhookChange",
    "WebhookCreate",
    "WebhookCreated",
    "WebhookDetail",
    "WebhookList",
    "validated",
]
