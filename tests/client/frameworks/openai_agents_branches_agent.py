"""An agent of the OpenAI Agents SDK whose user takes back a question, and then starts again."""

import asyncio
from typing import Any

from agents import Agent, RunConfig, RunHooks, Runner
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


class UserHooks(RunHooks):
    def __init__(self) -> None:
        self.events: list[str] = []

    async def on_llm_start(self, *_: Any) -> None:
        self.events.append("request")

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.events.append(f"{response.usage.output_tokens} tokens of {agent.name}")

    async def on_agent_end(self, *_: Any) -> None:
        self.events.append("end")


async def run() -> None:
    first, hooks = memory(), UserHooks()
    arguments = first.run_arguments(RunConfig(call_model_input_filter=user_filter), hooks)
    await Runner.run(agent, "Hello.", **arguments)
    await Runner.run(agent, "Wrong question.", **arguments)
    await first.pop_item()
    await first.pop_item()
    await Runner.run(agent, "Right question.", **arguments)
    assert len(filtered) == 3
    assert hooks.events == ["request", "20 tokens of reader", "end"] * 3
    items = await memory().get_items()
    assert items == await first.get_items()
    print(*(item["content"] for item in items if item["role"] == "user"))

    await first.clear_session()
    await Runner.run(agent, "New conversation.", **arguments)
    items = await memory().get_items()
    assert items == await first.get_items()
    print(*(item["content"] for item in items if item["role"] == "user"))


asyncio.run(run())
