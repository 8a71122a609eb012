"""The shapes of bodies and answers, a file a resource: what is validated, what OpenAPI says."""

from sessions.api.serializers.checks import ValidateRequest, Validity
from sessions.api.serializers.compactions import (
    CompactionDetail,
    CompactionPage,
    CompactRequest,
    RecapText,
)
from sessions.api.serializers.contents import Content, Pinned, SearchPage, ToolAnswer, ToolCall, Tools
from sessions.api.serializers.fields import MAX_TOKENS, Error, validated
from sessions.api.serializers.imports import Imported, ImportUpload
from sessions.api.serializers.memory import (
    CHURN_REVISIONS,
    MemoryDiff,
    MemoryFact,
    MemoryFactDecision,
    MemoryFactList,
    MemoryFactPage,
    MemoryFields,
    MemoryPage,
    MemoryProposal,
    MemorySettings,
    MemoryShown,
    MemoryTake,
    MemoryTimeline,
    MemoryUpkeep,
)
from sessions.api.serializers.sessions import Session, SessionCreate, SessionMade, SessionPage
from sessions.api.serializers.turns import Prompt, TurnPage, TurnPush, TurnPushed
from sessions.api.serializers.usage import Usage
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
    "CompactRequest",
    "CompactionDetail",
    "CompactionPage",
    "Content",
    "Error",
    "ImportUpload",
    "Imported",
    "MemoryDiff",
    "MemoryFact",
    "MemoryFactDecision",
    "MemoryFactList",
    "MemoryFactPage",
    "MemoryFields",
    "MemoryPage",
    "MemoryProposal",
    "MemorySettings",
    "MemoryShown",
    "MemoryTake",
    "MemoryTimeline",
    "MemoryUpkeep",
    "Pinned",
    "Prompt",
    "RecapText",
    "SearchPage",
    "Session",
    "SessionCreate",
    "SessionMade",
    "SessionPage",
    "ToolAnswer",
    "ToolCall",
    "Tools",
    "TurnPage",
    "TurnPush",
    "TurnPushed",
    "Usage",
    "ValidateRequest",
    "Validity",
    "WebhookChange",
    "WebhookCreate",
    "WebhookCreated",
    "WebhookDetail",
    "WebhookList",
    "validated",
]
