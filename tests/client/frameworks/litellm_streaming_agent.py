"""A loop around LiteLLM with streamed responses."""

import asyncio
import json

import litellm
from book import INSTRUCTIONS, MODEL, NEW, PROVIDER, QUESTION, SESSION_ID, TOOL, app, read_page
from contextapp_client.adapters.litellm import ContextAppCallback

litellm.suppress_debug_info = True  # written to the output
litellm.callbacks = [ContextAppCallback(app, create=NEW)]


async def stored(text: str) -> None:
    """Wait until a response is stored: LiteLLM reports streamed ones some time after their end."""
    session = app.session(SESSION_ID)
    while text not in str([turn["messages"] for turn in session.turns()]):
        await asyncio.sleep(0.05)


async def run() -> str:
    history = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    while True:
        stream = await litellm.acompletion(
            model=f"{PROVIDER}/{MODEL}",
            messages=history,
            tools=[TOOL],
            metadata={"session_id": SESSION_ID},
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        answer = litellm.stream_chunk_builder(chunks).choices[0].message
        history.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            await stored(answer.content)
            return answer.content
        for call in answer.tool_calls:
            page = read_page(**json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": page})


print(asyncio.run(run()))
