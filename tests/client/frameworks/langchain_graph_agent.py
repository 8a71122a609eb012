"""A graph of LangGraph that calls the model itself, with the synchronous client."""

from book import INSTRUCTIONS, IS_CLAUDE, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.langchain import compact_messages
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

tools = [tool(read_page)]
model = (ChatAnthropic if IS_CLAUDE else ChatOpenAI)(model=MODEL).bind_tools(tools)
session = app.session(SESSION_ID, create=NEW)


def call_model(state: MessagesState) -> MessagesState:
    history = [SystemMessage(INSTRUCTIONS), *state["messages"]]
    return {"messages": [model.invoke(compact_messages(session, history, tools=tools))]}


graph = StateGraph(MessagesState)
graph.add_node("model", call_model)
graph.add_node("tools", ToolNode(tools))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
done = graph.compile().invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 100})
compact_messages(session, done["messages"])
print(done["messages"][-1].text)
