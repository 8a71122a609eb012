"""An agent of LangChain."""

from book import INSTRUCTIONS, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

middleware = ContextAppMiddleware(app.session(SESSION_ID, create=NEW))
agent = create_agent(
    ChatOpenAI(model="gpt-5"), [read_page], system_prompt=INSTRUCTIONS, middleware=[middleware]
)
done = agent.invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 100})
print(done["messages"][-1].text)
