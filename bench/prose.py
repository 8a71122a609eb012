"""Measure what compaction keeps of conversations without tools.

    python -m bench.prose --folder <transcripts> [--policies balanced masking] [--shares 0.25 0.5]

Takes the words of users and agents out of recorded conversations, without tool calls and their results, and
replays them as `bench.compaction` does. A **fact** is a figure, a date or a name in a sentence. It is asked
for if the agent's next message or the user's reply repeats it, and it was last mentioned before the newest
messages that fill the budget, so that no window of that size contains it. It is kept if the prompt does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.compaction import DEFAULT_FOLDER
from bench.ours import Ours
from bench.replay import Case
from bench.rivals import RIVALS
from bench.transcripts import Transcript, transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.messages import Message, Role, Text
from compaction.policy import PRESETS, get_policy
from compaction.recap.statements import facts
from compaction.sizes.tokens import message_tokens

COUNTER = TiktokenCounter()
WINDOW = "window, batches to 50 %"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.prose", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="folder of recorded sessions")
    parser.add_argument("--policies", nargs="*", default=["balanced", "masking"], choices=sorted(PRESETS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.25, 0.5], help="budget / final size")
    parser.add_argument("--least", type=int, default=2_000, help="skip conversations with fewer tokens")
    arguments = parser.parse_args()
    found = [words for t in transcripts(arguments.folder) if _size(words := _words(t)) >= arguments.least]
    print(f"{len(found)} conversations; facts kept of those asked for, per cent")
    for share in arguments.shares:
        for name in (WINDOW, *arguments.policies):
            kept, asked, fits, steps = map(sum, zip(*(_replayed(w, share, name) for w in found), strict=True))
            shares = f"{100 * kept / max(1, asked):5.1f} of {asked}, fits {100 * fits / steps:.1f}"
            print(f"{share:4.0%}  {name:24} {shares}")


def _words(transcript: Transcript) -> tuple[Message, ...]:
    """Return what users and agents said, as one conversation."""
    return tuple(
        replace(message, position=position) for position, message in enumerate(_texts(transcript.messages))
    )


def _texts(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        parts = tuple(part for part in message.parts if isinstance(part, Text) and part.text.strip())
        if parts and message.role in (Role.USER, Role.ASSISTANT):
            bare = Message(position=0, role=message.role, parts=parts, turn=message.turn)
            yield replace(bare, tokens=message_tokens(bare, COUNTER))


def _size(messages: Sequence[Message]) -> int:
    return sum(message.tokens for message in messages)


def _replayed(messages: tuple[Message, ...], share: float, name: str) -> tuple[int, int, int, int]:
    """Return the facts kept and asked for, and the prompts that fit and all prompts."""
    case = Case("prose", "openai", messages, max(600, int(share * _size(messages))))
    contender = (
        RIVALS[name](case, COUNTER)
        if name in RIVALS
        else Ours(case, COUNTER, replace(get_policy(name), soft=0))
    )
    last_seen: dict[str, int] = {}
    kept = asked = fits = steps = 0
    for n, message in enumerate(messages):
        if message.role is Role.ASSISTANT and n:
            prompt = contender.prompt(n)
            shown = facts("\n".join(m.text for m in prompt))
            window = _window_start(case, n)
            wanted = facts("\n".join(m.text for m in messages[n : n + 2]))
            far = [fact for fact in wanted if case.head_end <= last_seen.get(fact, window) < window]
            kept, asked = kept + sum(fact in shown for fact in far), asked + len(far)
            fits, steps = fits + (_size(prompt) <= case.budget), steps + 1
        last_seen.update(dict.fromkeys(facts(message.text), n))
    return kept, asked, fits, steps


def _window_start(case: Case, n: int) -> int:
    """Return the first message of the newest ones that fill the budget."""
    room, start = case.budget, n
    while start and room >= case.messages[start - 1].tokens:
        start -= 1
        room -= case.messages[start].tokens
    return start


if __name__ == "__main__":
    main()
