"""An agent of LangChain: for one session with the asynchronous client, or for each thread with the other."""

import asyncio
from typing import Any

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, async_app, read_page
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

INPUT = {"messages": [("user", QUESTION)]}
LIMIT = {"recursion_limit": 100}


def agent(model: Any, session: Any, **options: Any) -> Any:
    middleware = [ContextAppMiddleware(session, **options)]
    return create_agent(model, [read_page], system_prompt=INSTRUCTIONS, middleware=middleware)


def run(model: Any) -> None:
    """Print the last message of an agent with this model, whose threads are sessions."""
    config = LIMIT | {"configurable": {"thread_id": SESSION_ID}}
    done = agent(model, app, create=NEW).invoke(INPUT, config)
    print(done["messages"][-1].text)


async def run_async(model: Any) -> None:
    session = await async_app.session(SESSION_ID, create=NEW)
    done = await agent(model, session).ainvoke(INPUT, LIMIT)
    print(done["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(run_async(ChatAnthropic(model=MODEL) if IS_CLAUDE else ChatOpenAI(model=MODEL)))
