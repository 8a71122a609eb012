"""A conversation with an agent of LangChain that replaces old messages with a summary."""

from typing import Any

from book import NEW, SESSION_ID, app
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage


def model(text: str) -> Any:
    return GenericFakeChatModel(messages=iter(AIMessage(f"{text} {number}.") for number in range(8)))


summarize = SummarizationMiddleware(model("Summary"), trigger=("messages", 6), keep=("messages", 2))
store = ContextAppMiddleware(app.session(SESSION_ID, create=NEW))
agent = create_agent(model("Answer"), [], middleware=[summarize, store])
history: list[BaseMessage] = []
for number in range(8):
    history = agent.invoke({"messages": [*history, HumanMessage(f"Question {number}?")]})["messages"]
print(history[-1].text)
