"""Recognize files that an agent names by a relative and by an absolute path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compaction.shell.syntax import is_absolute


@dataclass(slots=True)
class Paths:
    """The files of a session, each under the path that was seen first."""

    _known: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, list[str]] = field(default_factory=dict)  #: by the names of the files

    def first_path(self, path: str) -> str:
        """Return the path under which the file was seen first."""
        known = self._known.get(path)
        if known is None:
            same_name = self._by_name.setdefault(_slashed(path).rpartition("/")[2], [])
            known = self._known[path] = known_path(path, same_name)
            if known == path:
                same_name.append(path)
            elif is_absolute(path):  # another absolute path is that of another file
                same_name.remove(known)
        return known


def known_path(path: str, known: Iterable[str]) -> str:
    """Return the one known path of the same file, or the path itself if there is none or more than one."""
    same = [other for other in known if _is_same(path, other)]
    return same[0] if len(same) == 1 else path


def _is_same(one: str, other: str) -> bool:
    """Whether an absolute path ends with a relative one, which must name more than the file itself."""
    absolute, relative = map(_slashed, (one, other) if is_absolute(one) else (other, one))
    return (
        is_absolute(absolute)
        and "/" in relative
        and not is_absolute(relative)
        and absolute.endswith(f"/{relative}")
    )


def _slashed(path: str) -> str:
    """Return a path of Windows with the separators of Unix."""
    return path.replace("\\", "/")
