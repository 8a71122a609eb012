"""Texts that replace content in a prompt: descriptors, clips, pointers and markers.

A descriptor summarizes the structure of an output in one line. It repeats only names from the content:
identifiers, and quoted keys or columns of data. Free text would allow a tool's output to pose as generated
text. These texts are never parsed again; the edits record the changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import orjson

from compaction.identifiers.extract import short_forms
from compaction.identifiers.texts import result_names
from compaction.jsontext import dumps, loads_fast, loads_object
from compaction.messages import JSON
from compaction.shortening import shortened
from compaction.sizes.tokens import TokenCounter
from compaction.text_cache import once_per_text
from compaction.tools.actions import Action, Kind
from compaction.tools.failures import Lines, failing_lines
from compaction.tools.outcomes import exit_code

#: Describes the media of an output, because a handle retrieves only text.
MEDIA = "an image or document, which cannot be retrieved"

_MAX_NAMES = 8
_MAX_NAME = 40
_MAX_PATH = 160
_MAX_ARGUMENT = 300  #: maximum number of characters of an unshortened argument
_NOT_PLAIN = re.compile(r"[^\w.,:;/@#%+=~*?!$&|>'\" -]+")
#: Matches a key or column name of one or two words.
_NAME = re.compile(r"[\w.$@#%/*+-]+(?: [\w.$@#%/*+()-]+)?")
_TABLE_ROW = re.compile(r"\s*\|(.+)\|\s*")
_MARKER = re.compile(r"\n*^\[[\d,]+ earlier messages? \([\d to]+\) (?:is|are) not shown\.\]$", re.MULTILINE)


def describe(
    text: str,
    action: Action,
    handle: str,
    *,
    names: int = 0,
    elsewhere: Collection[str] = frozenset(),
    has_media: bool = False,
) -> str:
    """Return one line that replaces an output.

    It contains the source of the output, its shape, the identifiers mentioned most (at most `names`, and none
    that the prompt shows `elsewhere`), and the handle that retrieves its text.
    """
    if has_media and not text:
        return f"[Output not shown: {'; '.join(filter(None, (_origin(action), MEDIA)))}]"
    mentioned, media = _mentioned(text, names, elsewhere), MEDIA if has_media else ""
    facts = (_origin(action), _size(text), _shape(text), _exit(text), mentioned, media)
    return f"[Output not shown: {'; '.join(filter(None, facts))}; handle {handle}]"


def _mentioned(text: str, limit: int, elsewhere: Collection[str]) -> str:
    """Return the identifiers that a text mentions most often, which help to decide whether to retrieve it."""
    if not limit:
        return ""
    names, counts = result_names(text)
    new = (i for i, name in enumerate(names) if len(name) <= _MAX_NAME and name not in elsewhere)
    listed: dict[str, None] = {}
    covered: set[str] = set()
    for index in sorted(new, key=counts.__getitem__, reverse=True):
        if len(listed) == limit:
            break
        name = names[index]
        if name in covered:
            continue
        listed[name] = None
        for short in short_forms(name):  # `pool.size` also mentions `size`
            covered.add(short)
            listed.pop(short, None)
    return f"mentions {', '.join(listed)}" if listed else ""


def describe_failure(text: str, handle: str) -> str:
    """Return the lines of an output that report and explain a failure, with markers for the others.

    An output whose failure is not recognized is returned unchanged.
    """
    ranges = failing_lines(text)
    if not ranges:
        return text
    lines = text.split("\n")
    shown: list[str] = []
    end = 0
    for found in [*ranges, Lines(len(lines), len(lines))]:
        if found.first > end:
            shown.append(f"[{found.first - end} lines not shown; handle {handle}]")
        shown += lines[found.first : found.end]
        end = found.end
    return "\n".join(shown)


def pointer(handle: str, *, turn: int, position: int) -> str:
    """Return the line for an output that appears again later."""
    return f"[Same output as in message {position}, turn {turn}; handle {handle}]"


def superseded(action: Action, handle: str, *, turn: int, verb: str) -> str:
    """Return the line for a file that was read again or changed later."""
    return (
        f"[{_plain(action.path, _MAX_PATH)} as it was: superseded at turn {turn} ({verb}); handle {handle}]"
    )


def dropped_marker(count: int, first: int, last: int) -> str:
    """Return the line that marks evicted messages, so that the gap is visible."""
    if count == 1:
        return f"[1 earlier message ({first}) is not shown.]"
    return f"[{count} earlier messages ({first} to {last}) are not shown.]"


def without_markers(text: str) -> str:
    """Return the text of an eviction without its markers: the recap, or "" if it shows none."""
    return _MARKER.sub("", text)


def short_arguments(
    arguments: str,
    handle: str,
    *,
    names: int = 0,
    elsewhere: Collection[str] = frozenset(),
) -> str:
    """Return a call's arguments as a JSON object with long values replaced by their size and their names.

    `names` and `elsewhere` as in `describe`.
    """
    short: dict[str, JSON] = {}
    for key, value in loads_object(arguments).items():
        if len(dumps(value)) <= _MAX_ARGUMENT:
            short[key] = value
            continue
        text = _text(value)
        mentioned = _mentioned(text, names, elsewhere)
        facts = (f"{len(text)} characters", mentioned, f"handle {handle}")
        short[key] = f"[{'; '.join(filter(None, facts))}]"
    return dumps(short)


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else dumps(value)


def _origin(action: Action) -> str:
    if action.path:
        verb = {Kind.READ: "file", Kind.EDIT: "edit of", Kind.WRITE: "write of"}.get(action.kind, "path")
        return f"{verb} {_plain(action.path, _MAX_PATH)}"
    if action.command:
        return f"command {_plain(action.command.splitlines()[0], _MAX_PATH)}"
    return ""


def _size(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n")) if text else 0
    return f"{lines} line{'s' * (lines != 1)}, {len(text)} characters"


def _exit(text: str) -> str:
    code = exit_code(text)
    return "" if code is None else f"exit code {code}"


@once_per_text(1 << 12)
def _shape(text: str) -> str:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            return _json_shape(loads_fast(text))
        except ValueError:
            pass
    return _table_shape(text)


def _json_shape(value: JSON) -> str:
    if isinstance(value, dict):
        sizes = {key: f" ({len(item)})" for key, item in value.items() if isinstance(item, list | dict)}
        return f"JSON object, {len(value)} keys{_listed(value, sizes)}"
    if not isinstance(value, list):
        return ""
    first = value[0] if value else None
    keys = f" with keys{_listed(first)}" if isinstance(first, dict) and first else ""
    return f"JSON array, {len(value)} items{keys}"


def _table_shape(text: str) -> str:
    """Describe the columns of a Markdown table, or of comma- or tab-separated lines of one width."""
    lines = text[:4_000].splitlines()[:4]
    rows = [found[1] for line in lines if (found := _TABLE_ROW.fullmatch(line))]
    if len(rows) >= 2:
        return _columns(rows[0].split("|"))
    for mark in ("\t", ","):
        widths = {line.count(mark) for line in lines}
        if len(lines) >= 3 and len(widths) == 1 and (width := widths.pop()) >= 2 and width < 100:
            return _columns(lines[0].split(mark))
    return ""


def _columns(cells: Sequence[str]) -> str:
    return f"table, {len(cells)} columns{_listed([cell.strip() for cell in cells])}"


def _listed(names: Collection[str], notes: Mapping[str, str] | None = None) -> str:
    """Quote the first names. Excludes text that looks like a sentence."""
    shown = [
        f'"{name}"{(notes or {}).get(name, "")}'
        for name in islice(names, _MAX_NAMES)
        if len(name) <= _MAX_NAME and _NAME.fullmatch(name)
    ]
    more = ["…"] if len(shown) < len(names) else []
    return f": {', '.join([*shown, *more])}" if shown else ""


def _plain(text: str, limit: int) -> str:
    """Sanitize content for a generated line: no brackets, no line breaks, at most `limit` characters."""
    return shortened(" ".join(_NOT_PLAIN.sub(" ", text).split()), limit)


def clip(text: str, *, cap: int, head_share: float, handle: str, counter: TokenCounter) -> str:
    """Return `text` without its middle, at most about `cap` tokens long. JSON stays JSON.

    The marker contains the number of elided tokens and the handle. Cuts are at line ends if any are near.
    """
    total = counter.count(text)
    if total <= cap:
        return text
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _clip_json(loads_fast(text), total, cap, handle, counter)
        except ValueError:
            pass
    per_token = len(text) / total
    room = max(1, cap - 30) * per_token
    head = _to_line_end(text[: int(room * head_share)])
    tail = _from_line_start(text[len(text) - int(room * (1 - head_share)) :])
    elided = total - counter.count(head) - counter.count(tail)
    return f"{head}\n[… {elided} tokens elided; handle {handle} …]\n{tail}"


def _to_line_end(text: str) -> str:
    cut = text.rfind("\n", len(text) // 2)
    return text[:cut] if cut > 0 else text


def _from_line_start(text: str) -> str:
    cut = text.find("\n", 0, len(text) // 2)
    return text[cut + 1 :] if cut >= 0 else text


def _clip_json(value: JSON, total: int, cap: int, handle: str, counter: TokenCounter) -> str:
    """Replace the largest members of a value with a note until it is small enough."""
    room = max(1, cap - 40) * 3  # characters: JSON has at least about three per token
    note = f"[… elided of {total} tokens; handle {handle} …]"
    return orjson.dumps(_shrunk(value, room, note)).decode()


def _shrunk(value: JSON, room: int, note: str) -> JSON:
    size = len(orjson.dumps(value))
    if size <= room:
        return value
    if isinstance(value, list):
        kept: list[JSON] = []
        for item in value:
            room -= len(orjson.dumps(item)) + 1
            if room < 0:
                break
            kept.append(item)
        return [*kept, f"{len(value) - len(kept)} more items {note}"]
    if isinstance(value, dict):
        share = max(len(note) + 20, room // max(1, len(value)))
        members = list(value.items())
        fitting = members[: max(1, room // share)]
        shown = {key: _shrunk(item, share - len(key), note) for key, item in fitting}
        left = len(members) - len(fitting)
        return {**shown, "…": f"{left} more keys {note}"} if left else shown
    if isinstance(value, str) and room > len(note):
        return value[: room - len(note)] + note
    return note
