"""The same agent with the OpenAI Chat Completions API over plain HTTP: `openai_agent.py FOLDER "task"`.

Requires CONTEXTAPP_API_KEY and OPENAI_API_KEY. CONTEXTAPP_URL (default http://127.0.0.1:8000),
OPENAI_BASE_URL (default https://api.openai.com/v1; any compatible server works) and OPENAI_MODEL are
optional.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from contextapp_client import ContextApp, NewSession, Session

from toolbox import Toolbox, arguments

SYSTEM = (
    "You are a careful software engineer. Work on the project in the current folder with your tools. Run the "
    "tests after each change. Older tool outputs may be shortened to one line with a handle: retrieve what "
    "you need with expand_clip. Record decisions, failed attempts and next steps with "
    "update_working_memory, so that they are not lost. When the task is done, say so."
)


class Agent:
    """An agent that works on a task in a folder.

    `budget` is in input tokens; None uses the default for the model's context window.
    """

    def __init__(self, app: ContextApp, folder: Path, *, model: str, budget: int | None = None) -> None:
        self.name = model
        self.toolbox = Toolbox(folder)
        served = app.tools("openai")
        self.served = {tool["function"]["name"] for tool in served}
        create = NewSession(
            model=model,
            agent="openai-example",
            title=folder.resolve().name,
            system=SYSTEM,
            tools=[*self.toolbox.definitions("openai"), *served],
        )
        if budget is not None:
            create["budget"] = {"input_tokens": budget}
        self.session: Session = app.session(create=create)

    def run(self, task: str, *, max_turns: int = 100) -> None:
        """Work on the task until the model calls no more tools."""
        self.session.push([{"role": "user", "content": task}])
        for _ in range(max_turns):
            response = self.call_model()
            calls = response["choices"][0]["message"].get("tool_calls") or []
            # One turn: the model's response and the results of its tool calls.
            pushed = self.session.push([response, *(self.run_tool(call) for call in calls)])
            names = ", ".join(call["function"]["name"] for call in calls) or "done"
            print(f"{pushed['turn']:>4}  {names:<40} {pushed['prompt']['tokens']:>7,} tokens", flush=True)
            if not calls:
                return

    def call_model(self) -> dict[str, Any]:
        """Call the model with the prompt from contextapp."""
        base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
        reply = httpx2.post(
            f"{base}/chat/completions",
            json={"model": self.name, **self.session.prompt().params},
            headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
            timeout=120,
        )
        if reply.status_code != 200:
            sys.exit(f"The model server returned status {reply.status_code}: {reply.text[:500]!r}")
        response: dict[str, Any] = reply.json()
        return response

    def run_tool(self, call: dict[str, Any]) -> dict[str, object]:
        """Run a tool call: contextapp runs its own tools, the toolbox runs the others."""
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name in self.served:
            text = self.session.call_tool(name, arguments)["content"]
        else:
            text, _ = self.toolbox.run(name, arguments)
        return {"role": "tool", "tool_call_id": call["id"], "content": text}


def main() -> None:
    folder, task = arguments(
        "A coding agent with OpenAI's chat API.", variables=["CONTEXTAPP_API_KEY", "OPENAI_API_KEY"]
    )
    url = os.environ.get("CONTEXTAPP_URL", "http://127.0.0.1:8000")
    app = ContextApp(url, os.environ["CONTEXTAPP_API_KEY"])
    model = os.environ.get("OPENAI_MODEL", "gpt-5")
    Agent(app, folder, model=model).run(task)


if __name__ == "__main__":
    main()
