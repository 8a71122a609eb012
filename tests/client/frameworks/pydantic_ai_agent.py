"""An agent of pydantic-ai."""

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent

history = ContextAppHistory(app.session(SESSION_ID, create=NEW))
model = f"anthropic:{MODEL}" if IS_CLAUDE else f"openai-chat:{MODEL}"
agent = Agent(model, instructions=INSTRUCTIONS, tools=[read_page], capabilities=[history])
print(agent.run_sync(QUESTION).output)
