"""An agent of pydantic-ai that continues a history with a failed call, a change of its tools and an image."""

from book import INSTRUCTIONS, MODEL, NEW, QUESTION, SESSION_ID, app, read_page
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

failed = RetryPromptPart("`number` is not a number", tool_name="read_page", tool_call_id="failed")
image = BinaryContent(b"scan", media_type="image/png")
past = [
    ModelRequest(parts=[UserPromptPart("Read the first page.")]),
    ModelResponse(parts=[ToolCallPart("read_page", {"number": "one"}, tool_call_id="failed")]),
    ModelRequest(parts=[failed, ToolAvailabilityDeltaPart(tools_added=[])]),
    ModelResponse(parts=[ToolCallPart("read_page", {"number": 0}, tool_call_id="scan")]),
    ModelRequest(parts=[ToolReturnPart("read_page", ["A scan:", image], tool_call_id="scan")]),
]
history = ContextAppHistory(app.session(SESSION_ID, create=NEW))
agent = Agent(f"openai-chat:{MODEL}", instructions=INSTRUCTIONS, tools=[read_page], capabilities=[history])
print(agent.run_sync(QUESTION, message_history=past).output)
