"""An agent of pydantic-ai, with the asynchronous client."""

import asyncio

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, async_app, read_page
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent


async def run() -> str:
    history = ContextAppHistory(await async_app.session(SESSION_ID, create=NEW))
    model = f"anthropic:{MODEL}" if IS_CLAUDE else f"openai-chat:{MODEL}"
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[read_page], capabilities=[history])
    return (await agent.run(QUESTION)).output


print(asyncio.run(run()))
