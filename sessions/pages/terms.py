"""What the words of the pages mean, in a line each: presets, the rules of a prompt's lines, triggers."""

from __future__ import annotations

from collections.abc import Mapping

PRESETS: Mapping[str, str] = {
    "off": "everything is shown; nothing is ever compacted",
    "baseline": "a sliding window: the oldest messages go when the budget is full",
    "masking": "repeated, outdated and large tool outputs become one line, then the oldest turns go",
    "balanced": "repeated, outdated and large tool outputs become one line, then a recap stands "
    "for the oldest turns",
    "aggressive": "as balanced, but earlier and further, and smaller outputs too",
}

RULES: Mapping[str, str] = {
    "verbatim": "As it was pushed.",
    "shown": "As it was pushed.",
    "gone": "Not in the prompt.",
    "dedupe": "The same output stands again later; a pointer leads there.",
    "supersede": "The file was read again or changed later; one line says so.",
    "collapse": "A large tool output as one line, with a handle that brings it back.",
    "clip": "Beginning and end of a long tool output, with a handle that brings back the rest.",
    "recency": "An old tool output as one line, with a handle that brings it back.",
    "clear_thinking": "Thinking of earlier turns, left out.",
    "recap": "A summary that stands for the oldest turns.",
    "offload": "A giant output among the newest messages, described in a few lines, with a handle.",
    "drop_oldest": "The oldest messages, left out; one line marks the gap.",
    "shed": "A whole component, left out.",
    "last_resort": "Only the system text and the latest user message are left.",
}

TRIGGERS: Mapping[str, str] = {
    "hard": "The prompt had reached the limit that no prompt may pass; done at once, before the next call.",
    "soft": "The prompt came near the limit; done in the background.",
    "turns": "So many turns had come; done in the background.",
    "idle": "The session had been idle; done in the background.",
    "user": "Somebody asked for it.",
    "edit": "A person wrote the recap anew.",
}
