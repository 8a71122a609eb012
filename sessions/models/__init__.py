"""All models of the app."""

from sessions.models.claimable import Claimable
from sessions.models.client_history import ClientHistory, HistoryPoint
from sessions.models.comments import Comment
from sessions.models.compactions import Compaction, Edit, Recap
from sessions.models.dashboards import DismissedHint, SavedView, SessionProfile, Star
from sessions.models.imports import ImportedLog, ImportJob, ImportJobSession, ImportPart, ImportStep
from sessions.models.memory import (
    FactObservation,
    MemoryRevision,
    MemoryUpdateState,
    ProposalScan,
    SharedFact,
)
from sessions.models.memory_extraction import MemoryExtraction, MemoryExtractionState
from sessions.models.references import ReferenceScan
from sessions.models.rollups import CallHistogram, DailyUsage, RollupCursor, TurnStretch, UsageRollup
from sessions.models.samples import SampleLoad
from sessions.models.search import SearchBlock, SearchSegment, SearchState
from sessions.models.session import AgentSession, Preamble, PromptSnapshot, ServedPrompt
from sessions.models.sharing import SharedLink
from sessions.models.spending import BudgetAlert, CostBudget
from sessions.models.tool_runs import ToolRun
from sessions.models.tools import ToolFile, ToolOutputs, ToolRollup, ToolScan
from sessions.models.transcript import Blob, Message, Pin, Turn, TurnSource
from sessions.models.webhooks import TEST_EVENT, Webhook, WebhookDelivery, WebhookEvent, WebhookFormat
