"""The same agent in OpenAI's chat format over plain HTTP: `openai_agent.py FOLDER "task"`.

It needs CONTEXTAPP_API_KEY and OPENAI_API_KEY; CONTEXTAPP_URL (else http://127.0.0.1:8000), OPENAI_BASE_URL
(else https://api.openai.com/v1; any server that speaks the format) and OPENAI_MODEL are optional.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import urllib3
from contextapp_client import ContextApp, NewSession, Session

from toolbox import Toolbox

SYSTEM = (
    "You are a careful software engineer. You work on the project in the current folder with the tools that "
    "you have. Run the tests after each change. Older tool outputs may be shown as one line with a handle: "
    "bring back what you need with expand_clip. Keep what must not be lost in working memory with "
    "update_working_memory: decisions, what you tried, what is next. When the task is done, say so."
)


class Agent:
    """One task in one folder. `budget` is in input tokens; None leaves it to the model's window."""

    def __init__(self, app: ContextApp, folder: Path, *, model: str, budget: int | None = None) -> None:
        self.name = model
        self.toolbox = Toolbox(folder)
        served = app.tools("openai")
        self.served = {tool["function"]["name"] for tool in served}
        create = NewSession(
            model=model,
            agent="openai-example",
            title=folder.resolve().name,
            format="openai",
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
            response = self.think()
            calls = response["choices"][0]["message"].get("tool_calls") or []
            # A turn: what the model said, and what its tools answered.
            pushed = self.session.push([response, *(self.answer(call) for call in calls)])
            names = ", ".join(call["function"]["name"] for call in calls) or "done"
            print(f"{pushed['turn']:>4}  {names:<40} {pushed['prompt']['tokens']:>7,} tokens", flush=True)
            if not calls:
                return

    def think(self) -> dict[str, Any]:
        """The model's answer to the prompt that contextapp serves."""
        base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
        answer = urllib3.request(
            "POST",
            f"{base}/chat/completions",
            json={"model": self.name, **self.session.prompt().params},
            headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
            timeout=120,
        )
        if answer.status != 200:
            sys.exit(f"The model's server answered {answer.status}: {answer.data[:500]!r}")
        response: dict[str, Any] = answer.json()
        return response

    def answer(self, call: dict[str, Any]) -> dict[str, object]:
        """The result of a tool call: contextapp runs its own tools, the toolbox the others."""
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name in self.served:
            text = self.session.call_tool(name, arguments)["content"]
        else:
            text, _ = self.toolbox.run(name, arguments)
        return {"role": "tool", "tool_call_id": call["id"], "content": text}


def main() -> None:
    url = os.environ.get("CONTEXTAPP_URL", "http://127.0.0.1:8000")
    app = ContextApp(url, os.environ["CONTEXTAPP_API_KEY"])
    agent = Agent(app, Path(sys.argv[1]), model=os.environ.get("OPENAI_MODEL", "gpt-5"))
    agent.run(sys.argv[2])


if __name__ == "__main__":
    main()
