"""The texts of generated data: random words in realistic sizes, reused many times."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sessions.store import bodies

TOOLS = ("read_file", "run_tests", "grep", "edit_file", "fetch_page")

_WORDS = """
order invoice parcel cache queue session token budget prompt review failure retry timeout index column query
handler worker commit branch merge deploy region customer address carrier label weight rate total
""".split()  # noqa: SIM905  (a list of strings would be as long again)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A message as stored, created once and used by many sessions."""

    role: str
    data: bytes
    tokens: int
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bodies:
    """Questions, and steps: a call and its result with matching ids."""

    questions: Sequence[Body]
    steps: Sequence[tuple[Body, Body]]

    @classmethod
    def make(cls, random_: random.Random, *, questions: int = 400, steps: int = 6_000) -> Bodies:
        return cls(
            questions=[_body("user", f"Please {text_of(random_, 400)}") for _ in range(questions)],
            steps=[_step(random_, number) for number in range(steps)],
        )


def _step(random_: random.Random, number: int) -> tuple[Body, Body]:
    id, tool = f"toolu_{number:08d}", random_.choice(TOOLS)
    text = {"type": "text", "text": text_of(random_, 150)}
    call = {"type": "tool_use", "id": id, "name": tool, "input": {"path": f"src/{text_of(random_, 12)}.py"}}
    # Realistic sizes: half of the outputs are short, a few very long.
    size = min(int(random_.lognormvariate(6.3, 1.1)), 12_000)
    result = {"type": "tool_result", "tool_use_id": id, "content": text_of(random_, size)}
    return _body("assistant", [text, call], tool), _body("user", [result])


def text_of(random_: random.Random, characters: int) -> str:
    words = random_.choices(_WORDS, k=max(1, characters // 7))
    numbers = (f"{word}_{random_.randrange(1_000)}" if random_.random() < 0.2 else word for word in words)
    return " ".join(numbers)


def _body(role: str, content: Any, tool: str = "") -> Body:
    data = bodies.json_bytes({"role": role, "content": content})
    return Body(
        role=role,
        data=bodies.pack(data),
        tokens=max(len(data) // 4, 4),
        tool=tool,
    )
