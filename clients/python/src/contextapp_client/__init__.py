"""Python client of contextapp, the session store and context compactor for LLM agents."""

from contextapp_client.client import ContextApp
from contextapp_client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    ContextAppError,
    InvalidRequest,
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
from contextapp_client.session import Session
from contextapp_client.types import NewSession

__all__ = [
    "ApiError",
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
    "ServerError",
    "Session",
    "Unavailable",
    "UnexpectedResponse",
]
