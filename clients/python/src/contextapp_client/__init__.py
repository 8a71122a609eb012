"""The client of contextapp, the session store and context compactor for LLM agents."""

from contextapp_client.client import ContextApp
from contextapp_client.errors import (
    ApiError,
    BadAnswer,
    Conflict,
    ConnectionFailed,
    ContextAppError,
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotSupported,
    RateLimited,
    ServerFault,
    Unavailable,
)
from contextapp_client.prompt import Prompt
from contextapp_client.session import Session
from contextapp_client.types import NewSession

__all__ = [
    "ApiError",
    "BadAnswer",
    "Conflict",
    "ConnectionFailed",
    "ContextApp",
    "ContextAppError",
    "InvalidRequest",
    "NewSession",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "NotSupported",
    "Prompt",
    "RateLimited",
    "ServerFault",
    "Session",
    "Unavailable",
]
