"""An agent of LangChain with its own format of contents, and OpenAI's Responses API."""

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

middleware = ContextAppMiddleware(app.session(SESSION_ID, create=NEW))
if IS_CLAUDE:
    model = ChatAnthropic(model=MODEL, output_version="v1")
else:
    model = ChatOpenAI(model=MODEL, output_version="v1", use_responses_api=True)
agent = create_agent(model, [read_page], system_prompt=INSTRUCTIONS, middleware=[middleware])
done = agent.invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 100})
print(done["messages"][-1].text)
