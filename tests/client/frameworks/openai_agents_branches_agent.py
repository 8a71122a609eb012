"""An agent of the OpenAI Agents SDK whose user takes back a question, and then starts again."""

import asyncio
from typing import Any

from agents import Agent, RunConfig, Runner
from agents.run import CallModelData, ModelInputData
from book import INSTRUCTIONS, MODEL, NEW, SESSION_ID, app
from contextapp_client.adapters.openai_agents import ContextAppSession

agent = Agent(name="reader", model=MODEL, instructions=INSTRUCTIONS)
filtered = []


def memory() -> ContextAppSession:
    return ContextAppSession(app.session(SESSION_ID, create={**NEW, "format": "openai-responses"}))


def user_filter(data: CallModelData[Any]) -> ModelInputData:
    filtered.append(data)
    return data.model_data


async def run() -> None:
    first = memory()
    arguments = first.run_arguments(RunConfig(call_model_input_filter=user_filter))
    await Runner.run(agent, "Hello.", **arguments)
    await Runner.run(agent, "Wrong question.", **arguments)
    await first.pop_item()
    await first.pop_item()
    await Runner.run(agent, "Right question.", **arguments)
    assert len(filtered) == 3
    items = await memory().get_items()
    assert items == await first.get_items()
    print(*(item["content"] for item in items if item["role"] == "user"))

    await first.clear_session()
    await Runner.run(agent, "New conversation.", **arguments)
    items = await memory().get_items()
    assert items == await first.get_items()
    print(*(item["content"] for item in items if item["role"] == "user"))


asyncio.run(run())
