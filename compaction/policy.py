"""What a compaction may do: the budget, and the policy with its presets.

Shares are of the budget, sizes are tokens. A policy is a value: two equal ones decide the same, and each
record names the `version` of the rules that it was made by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from compaction.errors import PolicyError
from compaction.messages import JSON

#: Raised when the meaning of a setting, or the work of a step, changes.
POLICY_VERSION = 1

#: The steps in the order in which they are tried, cheapest first.
STEPS = (
    "dedupe",
    "supersede",
    "collapse",
    "clip",
    "recency",
    "clear_thinking",
    "recap",
    "offload",
    "drop_oldest",
    "shed",
    "last_resort",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Input tokens that the prompt may take."""

    input_tokens: int

    def __post_init__(self) -> None:
        if self.input_tokens < 1:
            raise PolicyError("budget.input_tokens", f"must be at least 1, is {self.input_tokens}")

    @classmethod
    def of_window(cls, context_window: int, *, max_output: int, reserve: int = 0) -> Budget:
        """What a model's context window leaves. Raises PolicyError where it leaves nothing."""
        return cls(input_tokens=context_window - max_output - reserve)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """Settings for the tools whose name matches `pattern` (`*` and `?`, upper and lower case differ).

    `exempt` outputs are not touched but by eviction, `never_collapse` ones may be clipped. `clip_tokens`
    replaces the policy's cap. `is_read` says whether the tool reads files, where its name does not.
    """

    pattern: str
    never_collapse: bool = False
    clip_tokens: int | None = None
    exempt: bool = False
    is_read: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise PolicyError("tools.pattern", "must be a text and not empty")
        if self.clip_tokens is not None and self.clip_tokens < 50:
            raise PolicyError("tools.clip_tokens", f"must be at least 50, is {self.clip_tokens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be done to the middle of a prompt, when, and how far."""

    name: str = "balanced"
    version: int = POLICY_VERSION
    steps: tuple[str, ...] = STEPS

    # When. `soft` runs in the background, `hard` at once; 0 turns a trigger off.
    soft: float = 0.70
    hard: float = 0.95
    target: float = 0.40  #: a compaction goes down to this share
    refire_delta: float = 0.05  #: no second firing before the prompt has grown by this share
    every_turns: int = 0
    idle_seconds: int = 0
    max_failures: int = 3  #: after so many failures in a row the background stays off

    # Where: both floors of the tail hold.
    tail_share: float = 0.25
    tail_messages: int = 4

    # How.
    collapse_tokens: int = 800
    descriptor_names: int = 20  #: identifiers that a descriptor tells of what it stands for
    clip_tokens: int = 1_500
    clip_head: float = 0.6
    recency_collapse_tokens: int = 200  #: in the older half of the middle
    offload_share: float = 0.25
    recap_tokens_min: int = 200
    recap_tokens_max: int = 2_400
    recap_share: float = 0.20  #: a recap takes at most this share of the budget
    recap_span_share: float = 0.20  #: and of the raw size of what it stands for
    tools: tuple[ToolRule, ...] = ()

    # Prices, as multiples of an uncached input token: what a rewrite costs and a cached token saves.
    cache_write_price: float = 1.25
    cache_read_price: float = 0.1

    def __post_init__(self) -> None:
        _check(self)

    def tool_rule(self, tool: str) -> ToolRule:
        """The first rule whose pattern fits the tool's name, else one that says nothing."""
        return _tool_rule(self.tools, tool)

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Policy:
        """A policy from a preset's name under `preset` and settings that differ from it.

        Raises PolicyError for an unknown preset or setting, and for values that cannot be.
        """
        settings = dict(data)
        name = settings.pop("preset", settings.get("name", "balanced"))
        if not isinstance(name, str):
            raise PolicyError("preset", f"must be a text, is {type(name).__name__}")
        base = PRESETS.get(name, PRESETS["balanced"]) if "preset" not in data else get_policy(name)
        known = {f.name: f for f in fields(cls)}
        for setting, value in settings.items():
            if setting not in known:
                raise PolicyError(setting, "no such setting")
            settings[setting] = _typed(setting, value, getattr(base, setting))
        return replace(base, **settings)


@lru_cache(1024)
def _tool_rule(rules: tuple[ToolRule, ...], tool: str) -> ToolRule:
    return next((rule for rule in rules if fnmatchcase(tool, rule.pattern)), ToolRule(pattern="*"))


def _typed(setting: str, value: JSON, like: object) -> object:
    """`value` with the type that the setting has. Raises PolicyError where it has another one."""
    if setting == "tools":
        if not isinstance(value, list | tuple):
            raise PolicyError(setting, "must be a list of tool rules")
        return tuple(_tool_rule_of(item) for item in value)
    if setting == "steps":
        if not isinstance(value, list | tuple):
            raise PolicyError(setting, "must be a list of steps")
        return tuple(str(step) for step in value)
    if isinstance(like, bool) or isinstance(value, bool):
        sound = isinstance(like, bool) and isinstance(value, bool)
    elif isinstance(like, float):
        sound = isinstance(value, int | float)
    else:
        sound = isinstance(value, type(like))
    if not sound:
        raise PolicyError(setting, f"must be of type {type(like).__name__}, is {type(value).__name__}")
    return value


def _tool_rule_of(item: JSON) -> ToolRule:
    if isinstance(item, ToolRule):
        return item
    if not isinstance(item, Mapping):
        raise PolicyError("tools", "a rule must be an object")
    try:
        return ToolRule(**item)
    except TypeError:
        unknown = sorted(item.keys() - {f.name for f in fields(ToolRule)}) or ["pattern"]
        raise PolicyError(f"tools.{unknown[0]}", "not a setting of a tool rule, or missing") from None


_SHARES = (
    "soft",
    "hard",
    "target",
    "tail_share",
    "offload_share",
    "recap_share",
    "refire_delta",
    "clip_head",
)

_LEAST = {
    "version": 1,
    "every_turns": 0,
    "idle_seconds": 0,
    "max_failures": 1,
    "tail_messages": 1,
    "collapse_tokens": 50,
    "clip_tokens": 50,
    "recency_collapse_tokens": 50,
    "recap_tokens_min": 50,
    "cache_write_price": 0,
}


def _check(policy: Policy) -> None:
    """Raises PolicyError for the first setting that cannot be."""
    for field in _SHARES:
        _must(field, 0 <= getattr(policy, field) <= 1, f"be between 0 and 1, is {getattr(policy, field)}")
    for field, least in _LEAST.items():
        value = getattr(policy, field)
        _must(field, value >= least, f"be at least {least}, is {value}")
    hard = policy.hard or 1.0
    _must("clip_head", 0 < policy.clip_head < 1, f"be between 0 and 1, is {policy.clip_head}")
    _must("target", 0 < policy.target <= hard, f"be above 0 and at most `hard` ({hard}), is {policy.target}")
    _must("soft", policy.soft <= hard, f"be at most `hard` ({hard}), is {policy.soft}")
    _must("recap_tokens_max", policy.recap_tokens_max >= policy.recap_tokens_min, "be at least the minimum")
    _must("cache_read_price", policy.cache_read_price > 0, "be above 0")
    for step in policy.steps:
        _must("steps", step in STEPS, f"name known steps ({', '.join(STEPS)}), {step!r} is none")


def _must(field: str, holds: bool, told: str) -> None:
    if not holds:
        raise PolicyError(field, f"must {told}")


_SAFETY = ("offload", "drop_oldest", "shed", "last_resort")

PRESETS: Mapping[str, Policy] = {
    "off": Policy(name="off", steps=(), soft=0, hard=0),
    "baseline": Policy(
        name="baseline",
        steps=("drop_oldest", "shed", "last_resort"),
        soft=0,
        hard=1.0,
        target=1.0,
        tail_share=0,
        tail_messages=1,
    ),
    "masking": Policy(
        name="masking", steps=("dedupe", "supersede", "collapse", "clear_thinking", *_SAFETY), soft=0
    ),
    "balanced": Policy(),
    "aggressive": Policy(
        name="aggressive", hard=0.80, soft=0.60, target=0.30, tail_share=0.15, collapse_tokens=400
    ),
}


def get_policy(name: str) -> Policy:
    """The preset of that name. Raises PolicyError."""
    try:
        return PRESETS[name]
    except KeyError:
        raise PolicyError("preset", f"unknown preset {name!r}; known: {', '.join(PRESETS)}") from None
