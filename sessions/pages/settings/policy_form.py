"""The form of a policy: a preset, the most used settings, the steps, and rules for single tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.utils.text import capfirst

from compaction.errors import PolicyError
from compaction.policy import MAX_SUMMARY_INSTRUCTIONS, PRESETS, Policy
from compaction.strategies import STRATEGIES
from sessions.pages.settings.common import PlainForm
from sessions.pages.terms import preset_meaning

#: The policy fields in the form and their help texts. The other fields are set over the API.
FORM_FIELDS: Mapping[str, str] = {
    "engine": "Who compacts. The provider clears outputs and summarizes itself; the thresholds still apply.",
    "soft": "Share of the budget at which a background compaction starts. Without a summarizer model, only "
    "if entered here. 0 turns it off.",
    "hard": "Share of the budget at which a push compacts immediately. 0 turns it off.",
    "target": "Share of the budget to which a compaction reduces the prompt.",
    "tail_share": "Minimum share of the room for messages that stays unchanged. The room is the budget "
    "without system prompt, tools and working memory.",
    "tail_messages": "Minimum number of recent messages that stay unchanged.",
    "collapse_tokens": "Older tool outputs of at least this size are reduced to one line.",
    "clip_tokens": "Older tool outputs that must not be collapsed are shortened to this size.",
    "every_turns": "Also compacts whenever this many turns have been added. 0 turns it off.",
    "idle_seconds": "Also compacts after this many seconds without a turn. 0 turns it off.",
    "summary_instructions": "What summaries must keep or leave out. Only used if a model summarizes.",
}

_STEP_CHOICES = (("", "As in the preset"), ("on", "On"), ("off", "Off"))
_OUTPUT_CHOICES = (
    ("", "Collapse"),
    ("never_collapse", "Never collapse"),
    ("exempt", "Never shorten"),
)
_READ_CHOICES = (("", "Detected"), ("yes", "Yes"), ("no", "No"))
#: Fields of one rule, each repeated for each rule.
_RULE_FIELDS = ("rule_pattern", "rule_outputs", "rule_clip_tokens", "rule_is_read")
#: Number of empty rows for new rules.
_NEW_RULES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One rule as entered. A row without a pattern is not a rule."""

    pattern: str = ""
    outputs: str = ""
    clip_tokens: str = ""
    is_read: str = ""

    @classmethod
    def of_rule(cls, rule: Mapping[str, Any]) -> RuleRow:
        """Return the row of a stored rule."""
        outputs = next((name for name in ("exempt", "never_collapse") if rule.get(name)), "")
        is_read = {True: "yes", False: "no", None: ""}[rule.get("is_read")]
        clip = rule.get("clip_tokens")
        return cls(
            pattern=str(rule.get("pattern", "")),
            outputs=outputs,
            clip_tokens="" if clip is None else str(clip),
            is_read=is_read,
        )

    def to_rule(self) -> dict[str, Any]:
        """Return the rule as a policy stores it. Raises `PolicyError` if the size is not a number."""
        rule: dict[str, Any] = {"pattern": self.pattern}
        if self.outputs in dict(_OUTPUT_CHOICES) and self.outputs:
            rule[self.outputs] = True
        if self.clip_tokens:
            if not (self.clip_tokens.isascii() and self.clip_tokens.isdigit()):
                raise PolicyError("tools.clip_tokens", "must be a whole number of tokens")
            rule["clip_tokens"] = int(self.clip_tokens[:9])
        if self.is_read in ("yes", "no"):
            rule["is_read"] = self.is_read == "yes"
        return rule


class PolicyForm(PlainForm):
    """After validation, `policy` contains the settings in the form that projects and sessions store.

    It includes `steps` and `tools` only if the form's data has their fields and they differ from the preset.
    """

    output_choices = _OUTPUT_CHOICES
    read_choices = _READ_CHOICES

    preset = forms.ChoiceField(
        choices=[(name, f"{name}: {preset_meaning(name)}") for name in PRESETS],
        initial=Policy().name,
        help_text="Leave a field blank to use the preset's value.",
    )
    engine = forms.ChoiceField(
        required=False,
        label="Engine",
        choices=[("", "contextapp"), ("provider", "Provider (Anthropic Messages, OpenAI Responses)")],
    )
    soft = forms.FloatField(required=False, label="Soft threshold")
    hard = forms.FloatField(required=False, label="Hard threshold")
    target = forms.FloatField(required=False, label="Target")
    tail_share = forms.FloatField(required=False, label="Recent messages (share)")
    tail_messages = forms.IntegerField(required=False, label="Recent messages (number)")
    collapse_tokens = forms.IntegerField(required=False, label="Collapse outputs (tokens)")
    clip_tokens = forms.IntegerField(required=False, label="Clip outputs (tokens)")
    every_turns = forms.IntegerField(required=False, label="Compact every (turns)")
    idle_seconds = forms.IntegerField(required=False, label="Compact when idle (seconds)")
    summary_instructions = forms.CharField(
        required=False,
        label="Instructions for summaries",
        max_length=MAX_SUMMARY_INSTRUCTIONS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, data: Any = None, *, stored: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(data, initial=stored, **options)
        default = Policy()
        for name, help_text in FORM_FIELDS.items():
            self.fields[name].help_text = help_text
            self.fields[name].widget.attrs |= {"step": "any", "placeholder": getattr(default, name)}
        states = _step_states(stored or {})
        for name, strategy in STRATEGIES.items():
            self.fields[_step_field(name)] = forms.ChoiceField(
                label=name,
                choices=_STEP_CHOICES,
                required=False,
                initial=states.get(name, ""),
                help_text=strategy.meaning,
            )
        self._stored_rules = (stored or {}).get("tools", [])

    def settings(self) -> Iterator[BoundField]:
        """Yield the preset and the settings."""
        return (self[name] for name in ("preset", *FORM_FIELDS))

    def steps(self) -> Sequence[BoundField]:
        """Return the field of each step, in the order in which they run."""
        return [self[_step_field(name)] for name in STRATEGIES]

    @property
    def has_step_changes(self) -> bool:
        return any(field.value() or field.errors for field in self.steps())

    def rules(self) -> Sequence[RuleRow]:
        """Return the rules, and empty rows for new ones."""
        rows = self._entered_rules() if self.is_bound else map(RuleRow.of_rule, self._stored_rules)
        return [*rows, *[RuleRow()] * _NEW_RULES]

    def has_rules(self) -> bool:
        return any(row.pattern for row in self.rules())

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        names = ("preset", *FORM_FIELDS)
        entered = {name: data[name] for name in names if data.get(name) not in (None, "")}
        entered |= _changed_steps(data)
        try:
            if rules := [row.to_rule() for row in self._entered_rules()]:
                entered["tools"] = rules
            Policy.from_json(entered)
        except PolicyError as error:
            if error.field in self.fields:
                self.add_error(error.field, f"{capfirst(error.reason)}.")
            else:
                self.add_error(None, str(error))
        self.policy = entered
        return data

    def includes(self, setting: str) -> bool:
        """Whether the form's data has the fields of a setting."""
        if setting == "tools":
            return "rule_pattern" in self.data
        if setting == "steps":
            return any(_step_field(name) in self.data for name in STRATEGIES)
        return setting == "preset" or setting in FORM_FIELDS

    def _entered_rules(self) -> list[RuleRow]:
        if not hasattr(self.data, "getlist"):
            return []
        columns = [[value.strip() for value in self.data.getlist(name)] for name in _RULE_FIELDS]
        return [row for values in zip(*columns, strict=False) if (row := _row(values)).pattern]


def _row(values: tuple[str, ...]) -> RuleRow:
    pattern, outputs, clip_tokens, is_read = values
    return RuleRow(pattern=pattern, outputs=outputs, clip_tokens=clip_tokens, is_read=is_read)


def _step_field(name: str) -> str:
    return f"step_{name}"


def _step_states(stored: Mapping[str, Any]) -> dict[str, str]:
    """Return "on" or "off" for each step in which the stored policy differs from its preset."""
    if "steps" not in stored:
        return {}
    preset = PRESETS.get(str(stored.get("preset")), PRESETS["balanced"])
    return {
        name: "on" if name in stored["steps"] else "off"
        for name in STRATEGIES
        if (name in stored["steps"]) != (name in preset.steps)
    }


def _changed_steps(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the setting `steps`, or nothing if the entered steps are those of the preset."""
    preset = PRESETS.get(data.get("preset", ""))
    if preset is None:
        return {}
    states = {name: data.get(_step_field(name)) or "" for name in STRATEGIES}
    steps = [
        name for name in STRATEGIES if states[name] == "on" or (not states[name] and name in preset.steps)
    ]
    return {} if steps == list(preset.steps) else {"steps": steps}
