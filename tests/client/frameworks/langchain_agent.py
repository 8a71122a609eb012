"""An agent of LangChain."""

from typing import Any

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI


def run(model: Any) -> None:
    """Print the last message of an agent with this model."""
    middleware = ContextAppMiddleware(app.session(SESSION_ID, create=NEW))
    agent = create_agent(model, [read_page], system_prompt=INSTRUCTIONS, middleware=[middleware])
    done = agent.invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 100})
    print(done["messages"][-1].text)


if __name__ == "__main__":
    run(ChatAnthropic(model=MODEL) if IS_CLAUDE else ChatOpenAI(model=MODEL))
