"""A loop around LiteLLM whose first answer is a refusal, and whose session is deleted meanwhile."""

import asyncio

import litellm
from book import MODEL, NEW, PROVIDER, SESSION_ID, app
from contextapp_client.adapters.litellm import ContextAppCallback

litellm.suppress_debug_info = True  # written to the output
litellm.callbacks = [ContextAppCallback(app, create={**NEW, "format": "openai"})]
video = {"type": "video_url", "video_url": {"url": "https://example.com/cat.mp4"}}
history = [{"role": "user", "content": [{"type": "text", "text": "What does it show?"}, video]}]


async def run() -> None:
    given = {"model": f"{PROVIDER}/{MODEL}", "messages": history, "metadata": {"session_id": SESSION_ID}}
    answer = await litellm.acompletion(**given)
    history.extend([answer.choices[0].message, {"role": "user", "content": "Try again."}])
    app.session(SESSION_ID).delete()
    answer = await litellm.acompletion(**given)
    print(answer.choices[0].message.content)


asyncio.run(run())
