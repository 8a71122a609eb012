"""The stores that `bench.stores` compares. Each one imports its framework when it is opened."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Protocol
from uuid import uuid4

import orjson

Messages = list[dict[str, Any]]


class Store(Protocol):
    """One session of a store. `tables` are patterns for the names of its tables."""

    tables: Sequence[str]

    async def append(self, messages: Messages) -> None: ...

    async def last(self, count: int) -> Sequence[Any]: ...


class OurStore:
    tables = ("agent_sessions_%",)

    def __init__(self) -> None:
        from accounts.models import ApiKey
        from sessions.selectors.redaction import redaction_of
        from sessions.services.push.values import Target
        from sessions.services.sessions.lifecycle import NewSession, session_create

        key = ApiKey.objects.select_related("project").earliest("created_at")
        new = NewSession(
            format="anthropic", external_id=str(uuid4()), model="claude-sonnet-4-5", policy={"preset": "off"}
        )
        self.session, _ = session_create(project_id=key.project_id, new=new)
        self.target = Target(key_id=key.pk, project_id=key.project_id, session_id=self.session.pk)
        self.redaction = redaction_of(key.project)

    async def append(self, messages: Messages) -> None:
        await asyncio.to_thread(self._append, messages)

    def _append(self, messages: Messages) -> None:
        from sessions.services.ingestion import messages_ingest
        from sessions.services.push.turns import turn_push
        from sessions.services.push.values import Push

        raw = [json.dumps(message).encode() for message in messages]
        ingested, found = messages_ingest(raw, messages, format="anthropic", redaction=self.redaction)
        turn_push(self.target, Push(messages=ingested, redacted=found))

    async def last(self, count: int) -> Sequence[Any]:
        return await asyncio.to_thread(self._last, count)

    def _last(self, count: int) -> Sequence[Any]:
        from sessions.selectors.lists.api import pushed_messages, session_turns, turns_page

        target = self.target
        found = session_turns(
            key_id=target.key_id, project_id=target.project_id, session_id=target.session_id
        )
        turns = turns_page(
            session_id=target.session_id, first=max(0, found.turn_count - count // 2), limit=count
        )
        pages = pushed_messages(session_id=target.session_id, turns=turns)
        return [message for page in orjson.loads(orjson.dumps(list(pages.values()))) for message in page]


@asynccontextmanager
async def ours(database: str) -> Any:
    import django

    os.environ.update(
        DATABASE_URL=database,
        DJANGO_SETTINGS_MODULE="contextapp.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="1",
    )
    django.setup()
    yield OurStore()


class AgentsStore:
    tables = ("agent_sessions", "agent_messages")

    def __init__(self, session: Any) -> None:
        self.session = session

    async def append(self, messages: Messages) -> None:
        await self.session.add_items(messages)

    async def last(self, count: int) -> Sequence[Any]:
        return await self.session.get_items(limit=count)


@asynccontextmanager
async def openai_agents(database: str) -> Any:
    from agents.extensions.memory import SQLAlchemySession

    url = database.replace("postgresql:", "postgresql+asyncpg:")
    session = SQLAlchemySession.from_url(str(uuid4()), url=url, create_tables=True)
    yield AgentsStore(session)
    await session.engine.dispose()


class AdkStore:
    tables = ("sessions", "events", "app_states", "user_states")

    def __init__(self, service: Any, session: Any) -> None:
        self.service, self.session = service, session

    async def append(self, messages: Messages) -> None:
        from google.adk.events import Event
        from google.genai.types import Content, Part

        for message in messages:
            part = Part(text=json.dumps(message["content"]))
            role = "model" if message["role"] == "assistant" else "user"
            event = Event(author=role, content=Content(role=role, parts=[part]))
            await self.service.append_event(self.session, event)

    async def last(self, count: int) -> Sequence[Any]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        session = self.session
        found = await self.service.get_session(
            app_name=session.app_name,
            user_id=session.user_id,
            session_id=session.id,
            config=GetSessionConfig(num_recent_events=count),
        )
        return found.events


@asynccontextmanager
async def google_adk(database: str) -> Any:
    from google.adk.sessions import DatabaseSessionService

    service = DatabaseSessionService(db_url=database.replace("postgresql:", "postgresql+asyncpg:"))
    yield AdkStore(service, await service.create_session(app_name="bench", user_id="bench"))


class LangGraphStore:
    tables = ("checkpoint%",)

    def __init__(self, saver: Any) -> None:
        self.saver = saver
        self.config: Any = {"configurable": {"thread_id": str(uuid4()), "checkpoint_ns": ""}}
        self.thread = dict(self.config["configurable"])
        self.messages: Messages = []

    async def append(self, messages: Messages) -> None:
        await asyncio.to_thread(self._append, messages)

    def _append(self, messages: Messages) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        self.messages = [*self.messages, *messages]
        version = f"{len(self.messages):032}"
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": self.messages}
        checkpoint["channel_versions"] = {"messages": version}
        self.config = self.saver.put(self.config, checkpoint, {"source": "loop"}, {"messages": version})

    async def last(self, count: int) -> Sequence[Any]:
        found = await asyncio.to_thread(self.saver.get_tuple, {"configurable": self.thread})
        return found.checkpoint["channel_values"]["messages"][-count:]


@asynccontextmanager
async def langgraph(database: str) -> Any:
    from langgraph.checkpoint.postgres import PostgresSaver

    with ExitStack() as stack:
        saver = stack.enter_context(PostgresSaver.from_conn_string(database))
        saver.setup()
        yield LangGraphStore(saver)


#: Each store and the module that it requires.
STORES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "contextapp": ("sessions", ours),
    "openai-agents, SQLAlchemySession": ("agents", openai_agents),
    "google-adk, DatabaseSessionService": ("google.adk", google_adk),
    "LangGraph, PostgresSaver": ("langgraph.checkpoint.postgres", langgraph),
}
