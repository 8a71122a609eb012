"""An agent of LangChain with its own format of contents, and OpenAI's Responses API."""

from book import IS_CLAUDE, MODEL
from langchain_agent import run
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

if IS_CLAUDE:
    run(ChatAnthropic(model=MODEL, output_version="v1"))
else:
    run(ChatOpenAI(model=MODEL, output_version="v1", use_responses_api=True))
