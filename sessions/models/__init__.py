from sessions.models.compactions import Compaction, Edit, Recap
from sessions.models.dashboards import SavedView, SessionProfile
from sessions.models.imports import ImportedLog
from sessions.models.memory import FactSighting, MemoryRevision, MemoryWatch, ProposalWatch, SharedFact
from sessions.models.reading import MemoryReader, MemoryReading
from sessions.models.referenced import ReferenceWatch
from sessions.models.rollups import RollupCursor, UsageRollup
from sessions.models.session import AgentSession, Preamble, PromptSnapshot
from sessions.models.spending import BudgetAlert, CostBudget
from sessions.models.transcript import Blob, Message, Turn
from sessions.models.webhooks import Webhook, WebhookDelivery, WebhookEvent

__all__ = [
    "AgentSession",
    "Blob",
    "BudgetAlert",
    "Compaction",
    "CostBudget",
    "Edit",
    "FactSighting",
    "ImportedLog",
    "MemoryReader",
    "MemoryReading",
    "MemoryRevision",
    "MemoryWatch",
    "Message",
    "Preamble",
    "PromptSnapshot",
    "ProposalWatch",
    "Recap",
    "ReferenceWatch",
    "RollupCursor",
    "SavedView",
    "SessionProfile",
    "SharedFact",
    "Turn",
    "UsageRollup",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
]
