"""The prompt at an earlier turn, and the differences between the prompts of two turns."""

from sessions.selectors.past_prompts.changes import (
    PromptChange,
    PromptChanges,
    prompt_changes,
    prompts_around,
)
from sessions.selectors.past_prompts.contents import EntryContent, entry_contents, originals
from sessions.selectors.past_prompts.diff import Change, Difference, outline_diff
from sessions.selectors.past_prompts.outline import Outline, RecordedEdit, outline_at, prompt_end
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.selectors.past_prompts.runs import run_of

__all__ = [
    "Change",
    "Difference",
    "EntryContent",
    "Outline",
    "PromptChange",
    "PromptChanges",
    "RecordedEdit",
    "entry_contents",
    "originals",
    "outline_at",
    "outline_diff",
    "past_prompt_json",
    "prompt_changes",
    "prompt_end",
    "prompts_around",
    "run_of",
]
