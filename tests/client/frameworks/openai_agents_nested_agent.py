"""An agent of the OpenAI Agents SDK that calls another agent as a tool."""

import asyncio

from agents import Agent, Runner, function_tool
from book import INSTRUCTIONS, MODEL, NEW, QUESTION, SESSION_ID, async_app, read_page
from contextapp_client.adapters.openai_agents import ContextAppSession

reader = Agent(name="reader", model=MODEL, instructions=INSTRUCTIONS, tools=[function_tool(read_page)])
ask_reader = reader.as_tool("ask_reader", "Asks somebody who reads the book.")
agent = Agent(name="host", model=MODEL, instructions="Ask the reader.", tools=[ask_reader])


async def run() -> str:
    session = await async_app.session(SESSION_ID, create={**NEW, "format": "openai-responses"})
    done = await Runner.run(agent, QUESTION, **ContextAppSession(session).run_arguments())
    return str(done.final_output)


print(asyncio.run(run()))
