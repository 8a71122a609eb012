"""An agent of LangChain with a provider's own tool, and the result of a call whose arguments are not JSON."""

from typing import Any

from book import INSTRUCTIONS, NEW, QUESTION, SESSION_ID, app
from contextapp_client.adapters.langchain import ContextAppMiddleware
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


class Model(GenericFakeChatModel):
    """Prints the types of the messages that it receives."""

    def bind_tools(self, tools: Any, **options: Any) -> "Model":
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> Any:
        print(*(message.type for message in messages))
        return super()._generate(messages, *given, **options)


failed = {"name": "read_page", "args": '{"number": ', "id": "failed", "error": None}
history = [
    HumanMessage("Read the first page."),
    AIMessage("", invalid_tool_calls=[failed]),
    ToolMessage("The arguments are not JSON.", tool_call_id="failed"),
    HumanMessage(QUESTION),
]
create_agent(
    Model(messages=iter([AIMessage("Nobody.")])),
    [{"google_search": {}}],
    system_prompt=INSTRUCTIONS,
    middleware=[ContextAppMiddleware(app.session(SESSION_ID, create=NEW))],
).invoke({"messages": history})
