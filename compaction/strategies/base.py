"""The declaration of a strategy, and the result of running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compaction.context import Context
from compaction.edits import Edit
from compaction.recap import Recap
from compaction.recap.spans import Evicted
from compaction.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of one strategy: its edits, and the view after them.

    `recap` is the recap that the step created; `evicted` are the messages that it replaces if the recap was
    extracted without a model. A result `is_declined` if the step would evict messages but save too little.
    """

    view: View
    edits: tuple[Edit, ...] = ()
    recap: Recap | None = None
    evicted: Evicted | None = None
    is_declined: bool = False

    @classmethod
    def of(
        cls,
        view: View,
        edits: Sequence[Edit],
        *,
        recap: Recap | None = None,
        evicted: Evicted | None = None,
    ) -> StepResult:
        """Return the result of applying `edits` to `view`."""
        return cls(view=view.with_edits(edits), edits=tuple(edits), recap=recap, evicted=evicted)

    @classmethod
    def shortened(cls, view: View, edits: Iterable[Edit | None], *, goal: int) -> StepResult:
        """Return the result of applying edits until the view, which has more, has at most `goal` tokens.

        `edits` is consumed only as far as necessary; None is skipped.
        """
        applied: list[Edit] = []
        excess = view.tokens - goal
        for edit in filter(None, edits):
            applied.append(edit)
            excess -= edit.tokens_before - edit.tokens_after
            if excess <= 0:
                break
        return cls.of(view, applied)


Run = Callable[[View, Context], StepResult]

#: The presets that run every step.
FULL = frozenset({"balanced", "aggressive"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One step of a compaction.

    `name` is recorded with every edit and listed in a policy's steps. `meaning` is the tooltip of an edit,
    one sentence. `description` is the strategy's row in the documentation. `presets` are the policies that
    run it. A strategy `is_free` if a handle restores everything that it removes. The others run only if the
    prompt is still above the target after the free ones, and evict messages only if the gain is worthwhile.
    """

    name: str
    meaning: str
    description: str
    run: Run
    is_free: bool = False
    presets: frozenset[str] = FULL
