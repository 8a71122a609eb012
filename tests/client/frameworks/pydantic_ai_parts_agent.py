"""An agent of pydantic-ai that continues requests of several parts, of which only some are shown."""

import json

from book import NEW, SESSION_ID, app, read_page
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

PAGES = 8
seen = []


def image(number: int) -> BinaryContent:
    return BinaryContent(bytes([number]), media_type="image/png")


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    parts = [part for message in messages for part in message.parts]
    system = [part.content for part in parts if isinstance(part, SystemPromptPart)]
    prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
    images = [item.data[0] for prompt in prompts for item in prompt if isinstance(item, BinaryContent)]
    shown = history.session.prompt(format="openai").params["messages"]
    expected = [number for number in range(PAGES) if block(number) in json.dumps(shown)]
    seen.append((system == ["Be brief."], images == expected, bool(images)))
    return ModelResponse(parts=[TextPart("Nobody.")])


def block(number: int) -> str:
    return json.dumps({"url": f"data:image/png;base64,{image(number).base64}"})


long = read_page(100)
past: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("Read."), UserPromptPart(long)])
]
history = ContextAppHistory(app.session(SESSION_ID, create=NEW))
agent = Agent(FunctionModel(model), capabilities=[history])
for number in range(PAGES):
    call = ToolCallPart("read_page", {"number": number}, tool_call_id=f"c{number}")
    result = ToolReturnPart("read_page", read_page(number), tool_call_id=f"c{number}")
    prompt = UserPromptPart([TextContent(f"Picture {number}:"), image(number), CachePoint()])
    past += [ModelResponse(parts=[call]), ModelRequest(parts=[result, prompt])]
    past = agent.run_sync("Go on.", message_history=past).all_messages()
print(set(seen))
