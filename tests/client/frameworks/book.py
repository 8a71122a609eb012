"""Shared by all agents: the model, a session with a small budget, and a tool whose outputs soon exceed it."""

import os

from contextapp_client import AsyncContextApp, ContextApp

SERVER = os.environ["CONTEXTAPP_URL"], os.environ["CONTEXTAPP_KEY"]
app = ContextApp(*SERVER, retries=0)
async_app = AsyncContextApp(*SERVER, retries=0)
SESSION_ID = os.environ["SESSION"]
MODEL = os.environ["MODEL"]
IS_CLAUDE = MODEL.startswith("claude")
PROVIDER = "anthropic" if IS_CLAUDE else "openai"
NEW = {"model": MODEL, "budget": {"input_tokens": 6_000}}
QUESTION = "Who lives in house_7 of the last page?"
INSTRUCTIONS = "Read all pages."
TOOL = {
    "type": "function",
    "function": {
        "name": "read_page",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
    },
}


def read_page(number: int) -> str:
    """Return a page of the book."""
    return "\n".join(f"{number}.{line}: the cat of house_{line % 9} sleeps" for line in range(100))
