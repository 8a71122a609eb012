"""An agent of the OpenAI Agents SDK, in two runs: the second finds the history in contextapp."""

import asyncio

from agents import Agent, Runner, function_tool
from book import INSTRUCTIONS, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.openai_agents import ContextAppSession

agent = Agent(name="reader", model=MODEL, instructions=INSTRUCTIONS, tools=[function_tool(read_page)])


async def run(text: str) -> str:
    memory = ContextAppSession(app.session(SESSION_ID, create={**NEW, "format": "openai-responses"}))
    done = await Runner.run(agent, text, max_turns=50, **memory.run_arguments())
    return str(done.final_output)


print(asyncio.run(run(QUESTION)))
