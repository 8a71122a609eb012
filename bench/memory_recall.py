"""Compare references kept in prompts with and without working memory.

    python -m bench.memory_recall <transcripts>/entire-claude-code [--share 0.25] [--sample 1]

Replays each session as `bench.compaction` does, with one policy and one budget, twice: with the automatically
updated working memory, refreshed at each compaction, and without. Both have the same budget, so the recap is
smaller if there is a memory.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from bench.ours import Ours
from bench.replay import Case, Score, replay
from bench.transcripts import transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.layout import positions_kept
from compaction.memory.origins import Notes
from compaction.memory.updates import UpdaterState, update_notes
from compaction.policy import Policy, get_policy
from compaction.replay.served import no_memory, without_model
from compaction.sizes.tokens import TokenCounter
from compaction.view import View

_LEAST_TOKENS = 20_000
_LEAST_BUDGET = 4_000


class Remembering:
    """The text of the working memory, updated turn by turn as a worker would."""

    def __init__(self, case: Case, policy: Policy, counter: TokenCounter) -> None:
        self._case, self._policy, self._counter = case, policy, counter
        self._notes, self._state, self._read = Notes(), UpdaterState(), 0

    def __call__(self, view: View, until: int) -> str:
        new = self._case.messages[self._read : until]
        self._read = until
        for _, turn in groupby(new, key=lambda message: message.turn):
            kept = update_notes(self._notes, self._state, list(turn), counter=self._counter)
            self._notes, self._state = kept.notes, kept.state
        return self._notes.render(positions_kept(view, self._policy, budget_tokens=self._case.budget))


def contender(case: Case, *, with_memory: bool) -> Ours:
    counter, policy = TiktokenCounter(), without_model(get_policy("balanced"))
    memory_text = Remembering(case, policy, counter) if with_memory else no_memory
    return Ours(case, counter, policy, memory_text=memory_text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.memory_recall")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=0.25, help="budget / final size")
    parser.add_argument("--sample", type=int, default=1, help="take every n-th session")
    arguments = parser.parse_args()
    scores = {False: Score(), True: Score()}
    found = [t for t in transcripts(arguments.folder) if t.tokens >= _LEAST_TOKENS][:: arguments.sample]
    for transcript in found:
        budget = max(_LEAST_BUDGET, int(arguments.share * transcript.tokens))
        case = Case(transcript.name, transcript.format, transcript.messages, budget)
        for with_memory, total in scores.items():
            total.add(replay(case, contender(case, with_memory=with_memory), check=False))
    for with_memory, score in scores.items():
        shares = "  ".join(
            f"{key} {100 * score.kept[key] / max(1, score.references[key]):.1f} % of {score.references[key]}"
            for key in ("all", "distant", "far")
        )
        tokens = f"{100 * score.tokens / score.raw_tokens:.1f} % of the tokens"
        fits = f"{100 * score.fits / score.steps:.1f} % fit"
        print(
            f"memory {'on ' if with_memory else 'off'}: {shares}  {tokens}  {fits}  ({len(found)} sessions)"
        )


if __name__ == "__main__":
    main()
