"""How often and where the evicted messages mention each name.

Most names are mentioned once and never become part of the recap. There is therefore no object for each name,
but a mapping for each figure, which a whole set of names updates at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, repeat

from compaction.recap.values import Mention

#: `Mention._make` without its check of the length, which takes most of its time.
_mention = partial(tuple.__new__, Mention)


@dataclass(slots=True)
class NameTally:
    """The figures of `Mention` by name.

    `newest` maps each name to its `last` and `among`, in the order of the first mentions. `own` contains only
    names that the assistant used. `messages` and `own_counts` are complete after `count`.
    """

    newest: dict[str, tuple[int, int]] = field(default_factory=dict)
    messages: Counter[str] = field(default_factory=Counter)
    own: dict[str, int] = field(default_factory=dict)
    own_counts: Counter[str] = field(default_factory=Counter)
    _folded: int = -1  #: the newest position in the earlier recap
    _position: int = -1  #: of the message that was added last
    _added: Collection[str] = ()  #: its names; a set if it has several parts
    _uncounted: list[Collection[str]] = field(default_factory=list)  #: the names of messages, without repeats
    _own_uncounted: list[Collection[str]] = field(default_factory=list)

    def fold(self, mentions: Sequence[Mention]) -> None:
        """Add the names of an earlier recap."""
        if not mentions:
            return
        names, lasts, owns, counts, messages, among = zip(*mentions, strict=True)
        is_own = [own >= 0 for own in owns]
        self.newest.update(zip(names, zip(lasts, among, strict=True), strict=True))
        self.own.update(compress(zip(names, owns, strict=True), is_own))
        # `Counter.update` would add.
        dict.update(self.messages, zip(names, messages, strict=True))
        dict.update(self.own_counts, compress(zip(names, counts, strict=True), is_own))
        self._folded = max(self._folded, *lasts)

    def add(self, names: Sequence[str], position: int, *, is_own: bool) -> None:
        """Add the distinct names of a part of a message. Messages must be added in chronological order."""
        if position != self._position:
            self._position, self._added = position, self._counted(position)
        if self._added:
            added = self._added if isinstance(self._added, set) else set(self._added)
            new = set(names) - added
            added |= new
            self._uncounted.append(new)
            self._added = added
        else:
            self._uncounted.append(names)
            self._added = names
        self.newest.update(dict.fromkeys(names, (position, len(names))))
        if is_own:
            self.own.update(dict.fromkeys(names, position))
            self._own_uncounted.append(names)

    def count(self) -> None:
        """Count the mentions of the names added so far. Counting all at once is faster."""
        self.messages.update(chain.from_iterable(self._uncounted))
        self.own_counts.update(chain.from_iterable(self._own_uncounted))
        self._uncounted, self._own_uncounted = [], []

    def _counted(self, position: int) -> Collection[str]:
        """Return the names for which the earlier recap has counted the message at this position."""
        if position > self._folded:
            return ()
        return {name for name, (last, _) in self.newest.items() if last == position}

    def mentions(self, names: Sequence[str]) -> Iterator[Mention]:
        """Return the figures of these names."""
        newest = [self.newest[name] for name in names]
        figures = zip(
            names,
            [last for last, _ in newest],
            map(self.own.get, names, repeat(-1)),
            map(self.own_counts.get, names, repeat(0)),
            map(self.messages.get, names),
            [among for _, among in newest],
            strict=True,
        )
        return map(_mention, figures)
