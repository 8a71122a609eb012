"""An agent of the OpenAI Agents SDK with a model of Chat Completions, which a later process continues."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from book import INSTRUCTIONS, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.openai_agents import ContextAppSession
from openai import AsyncOpenAI


async def run() -> str:
    model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI())
    agent = Agent(name="reader", model=model, instructions=INSTRUCTIONS, tools=[function_tool(read_page)])
    session = app.session(SESSION_ID, create={**NEW, "format": "openai-responses"})
    await Runner.run(agent, QUESTION, max_turns=50, **ContextAppSession(session).run_arguments())
    later = ContextAppSession(session).run_arguments()
    return str((await Runner.run(agent, "Are you sure?", **later)).final_output)


print(asyncio.run(run()))
