"""The texts of generated data: words and identifiers in realistic sizes and frequencies, reused many times.

Words follow Zipf's law. As in recorded sessions, neighboring steps mention the same few identifiers, such as
paths and names of functions, and some identifiers, such as hashes, occur once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sessions.store import bodies

TOOLS = ("read_file", "run_tests", "grep", "edit_file", "fetch_page")

_FREQUENT = """
order invoice parcel cache queue session token budget prompt review failure retry timeout index column query
handler worker commit branch merge deploy region customer address carrier label weight rate total
""".split()  # noqa: SIM905  (a list of strings would be as long again)
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvzhj" for vowel in "aeiou"]
_WORDS_TOTAL = 30_000
#: Steps that share identifiers, their number of identifiers, and the share of words that are identifiers.
_STEPS_OF_AREA, _NAMES_OF_AREA, _NAMES_SHARE = 40, 60, 0.15
#: Share of identifiers that occur once.
_UNIQUE_SHARE = 0.04


def _word(rank: int) -> str:
    if rank < len(_FREQUENT):
        return _FREQUENT[rank]
    syllables = []
    rank += len(_SYLLABLES)
    while rank:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
    return "".join(syllables)


_WORDS = [_word(rank) for rank in range(_WORDS_TOTAL)]
_FREQUENCIES = list(accumulate(1 / (rank + 10) for rank in range(_WORDS_TOTAL)))


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
    def make(cls, random_: random.Random, *, questions: int = 400, steps: int = 20_000) -> Bodies:
        areas = [_names(random_) for _ in range(steps // _STEPS_OF_AREA + 1)]
        return cls(
            questions=[
                _body("user", f"Please {text_of(random_, 400, random_.choice(areas))}")
                for _ in range(questions)
            ],
            steps=[_step(random_, number, areas[number // _STEPS_OF_AREA]) for number in range(steps)],
        )


def _step(random_: random.Random, number: int, names: Sequence[str]) -> tuple[Body, Body]:
    id, tool = f"toolu_{number:08d}", random_.choice(TOOLS)
    text = {"type": "text", "text": text_of(random_, 150, names)}
    path = next((name for name in names if "/" in name), "README.md")
    call = {"type": "tool_use", "id": id, "name": tool, "input": {"path": path}}
    # Realistic sizes: half of the outputs are short, a few very long.
    size = min(int(random_.lognormvariate(6.3, 1.1)), 12_000)
    result = {"type": "tool_result", "tool_use_id": id, "content": text_of(random_, size, names)}
    return _body("assistant", [text, call], tool), _body("user", [result])


def _names(random_: random.Random) -> list[str]:
    """Return the identifiers of neighboring steps: paths, functions and classes."""
    first, second, third = (_some_words(random_, _NAMES_OF_AREA) for _ in range(3))
    forms = ("src/{0}/{1}_{2}.py", "{0}_{1}", "{0}_{1}_{2}", "{0}.{1}", "{0}{1}")
    return [
        random_.choice(forms).format(one.title() if number % 5 == 4 else one, two, three)
        for number, (one, two, three) in enumerate(zip(first, second, third, strict=True))
    ]


def text_of(random_: random.Random, characters: int, names: Sequence[str] = ()) -> str:
    """Return words, among them some of `names`, with about this many characters."""
    words = _some_words(random_, max(1, characters // 7))
    for at in range(len(words)):
        if names and random_.random() < _NAMES_SHARE:
            is_unique = random_.random() < _UNIQUE_SHARE
            words[at] = f"{random_.getrandbits(40):010x}" if is_unique else random_.choice(names)
    return " ".join(words)


def _some_words(random_: random.Random, count: int) -> list[str]:
    return random_.choices(_WORDS, cum_weights=_FREQUENCIES, k=count)


def _body(role: str, content: Any, tool: str = "") -> Body:
    data = bodies.json_bytes({"role": role, "content": content})
    return Body(
        role=role,
        data=bodies.pack(data),
        tokens=max(len(data) // 4, 4),
        tool=tool,
    )
