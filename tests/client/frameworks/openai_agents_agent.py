"""An agent of the OpenAI Agents SDK, with the asynchronous client."""

import asyncio

from agents import Agent, Runner, function_tool
from book import INSTRUCTIONS, MODEL, NEW, QUESTION, SESSION_ID, async_app, read_page
from contextapp_client.adapters.openai_agents import ContextAppSession

agent = Agent(name="reader", model=MODEL, instructions=INSTRUCTIONS, tools=[function_tool(read_page)])


async def run(text: str) -> str:
    session = await async_app.session(SESSION_ID, create={**NEW, "format": "openai-responses"})
    memory = ContextAppSession(session)
    done = await Runner.run(agent, text, max_turns=50, **memory.run_arguments())
    return str(done.final_output)


print(asyncio.run(run(QUESTION)))
