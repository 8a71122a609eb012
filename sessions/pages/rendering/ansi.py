"""Terminal output: colors and styles of ANSI escape sequences as CSS classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString

from sessions.pages.text import visible

#: Select Graphic Rendition, for example `ESC[1;31m`.
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
#: Cursor movement, clearing and mode changes, which have no meaning in recorded output.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlsu]|\x1b[=>78]")

_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike"}
#: Longer numbers are not codes, and Python does not convert those of thousands of digits.
_CODE_DIGITS = 9
#: SGR codes that turn off styles.
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("strike",)}


def is_ansi(text: str) -> bool:
    return "\x1b[" in text


def ansi_html(text: str) -> SafeString:
    """Return the text with its colors as `<span class="ansi-…">`. Unknown sequences stay visible."""
    pieces = _SGR.split(_CONTROL.sub("", text))
    state: dict[str, str] = {}
    html: list[str] = [escape(visible(pieces[0]))]
    for codes, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        state = _after(state, [int(code[:_CODE_DIGITS] or 0) for code in codes.split(";")])
        shown = escape(visible(piece))
        classes = " ".join(f"ansi-{name}" for name in state.values())
        html.append(f'<span class="{classes}">{shown}</span>' if classes and shown else shown)
    return SafeString("".join(html))


def _after(state: dict[str, str], codes: Iterable[int]) -> dict[str, str]:
    """Return the state after a sequence. `state` maps a style, "fg" or "bg" to the suffix of its class."""
    state, rest = dict(state), iter(codes)
    for code in rest:
        if code == 0:
            state.clear()
        elif code in _STYLES:
            state[_STYLES[code]] = _STYLES[code]
        elif code in _OFF:
            for style in _OFF[code]:
                state.pop(style, None)
        else:
            _set_color(state, code, rest)
    return state


def _set_color(state: dict[str, str], code: int, rest: Iterator[int]) -> None:
    layer = "bg" if 40 <= code < 50 or 100 <= code < 108 else "fg"
    base = code % 10
    if code in (38, 48):
        color = _extended(rest)
    elif code in (39, 49):
        color = None
    elif 30 <= code < 48:
        color = base
    elif 90 <= code < 108:
        color = base + 8
    else:
        return
    if color is None:
        state.pop(layer, None)
    else:
        state[layer] = f"{layer}{color}"


def _extended(rest: Iterator[int]) -> int | None:
    """Read `5;n` or `2;r;g;b`, and return the nearest of the 16 basic colors."""
    match next(rest, None):
        case 5:
            number = next(rest, 0)
            return number if number < 16 else _nearest(*_rgb(number))
        case 2:
            return _nearest(next(rest, 0), next(rest, 0), next(rest, 0))
    return None


def _rgb(number: int) -> tuple[int, int, int]:
    """Return the red, green and blue of a color of the 256-color palette, each from 0 to 255."""
    if number >= 232:
        gray = min(8 + (number - 232) * 10, 255)
        return gray, gray, gray
    number -= 16
    return number // 36 * 51, number // 6 % 6 * 51, number % 6 * 51


def _nearest(red: int, green: int, blue: int) -> int:
    brightest = max(red, green, blue)
    if brightest - min(red, green, blue) < 40:
        return 7 if brightest > 170 else 8 if brightest > 60 else 0
    bits = sum(1 << at for at, value in enumerate((red, green, blue)) if 2 * value > brightest)
    return bits + (8 if brightest > 200 else 0)
