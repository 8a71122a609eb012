"""An agent of LangChain."""

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

middleware = ContextAppMiddleware(app.session(SESSION_ID, create=NEW))
model = ChatAnthropic(model=MODEL) if IS_CLAUDE else ChatOpenAI(model=MODEL)
agent = create_agent(model, [read_page], system_prompt=INSTRUCTIONS, middleware=[middleware])
done = agent.invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 100})
print(done["messages"][-1].text)
