"""A loop around LiteLLM, with the asynchronous client."""

import asyncio
import json

import litellm
from book import INSTRUCTIONS, MODEL, NEW, PROVIDER, QUESTION, SESSION_ID, TOOL, async_app, read_page
from contextapp_client.adapters.litellm import ContextAppCallback

litellm.suppress_debug_info = True  # written to the output
litellm.callbacks = [ContextAppCallback(async_app, create=NEW)]


async def run() -> str:
    history = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    while True:
        response = await litellm.acompletion(
            model=f"{PROVIDER}/{MODEL}", messages=history, tools=[TOOL], metadata={"session_id": SESSION_ID}
        )
        answer = response.choices[0].message
        history.append(answer)
        if not answer.tool_calls:
            return answer.content
        for call in answer.tool_calls:
            page = read_page(**json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": page})


print(asyncio.run(run()))
