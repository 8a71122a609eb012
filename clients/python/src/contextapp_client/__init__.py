"""Python client of contextapp, the session store and context compactor for LLM agents."""

from contextapp_client.client import AsyncContextApp, ContextApp
from contextapp_client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    ContextAppError,
    InvalidRequest,
    InvalidSignature,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotSupported,
    RateLimited,
    ServerError,
    Unavailable,
    UnexpectedResponse,
)
from contextapp_client.prompt import Prompt
from contextapp_client.session import AsyncSession, Session
from contextapp_client.types import NewSession
from contextapp_client.webhooks import verify_webhook

__all__ = [
    "ApiError",
    "AsyncContextApp",
    "AsyncSession",
    "Conflict",
    "ConnectionFailed",
    "ContextApp",
    "ContextAppError",
    "InvalidRequest",
    "InvalidSignature",
    "NewSession",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "NotSupported",
    "Prompt",
    "RateLimited",
    "ServerError",
    "Session",
    "Unavailable",
    "UnexpectedResponse",
    "verify_webhook",
]
