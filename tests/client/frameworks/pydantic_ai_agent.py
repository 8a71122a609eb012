"""An agent of pydantic-ai."""

from book import INSTRUCTIONS, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent

history = ContextAppHistory(app.session(SESSION_ID, create=NEW))
agent = Agent("openai-chat:gpt-5", instructions=INSTRUCTIONS, tools=[read_page], capabilities=[history])
print(agent.run_sync(QUESTION).output)
