"""Every type of message, item and content block of the official SDKs is accepted and served unchanged."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import pytest
from anthropic.types.beta import BetaContentBlockParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from typing_extensions import is_typeddict

from compaction.dialects import get_dialect

#: Optional fields without which a message has no content, or cannot be assigned to its call.
NEEDED = {
    ("ChatCompletionAssistantMessageParam", "content"),
    ("FunctionCallOutput", "call_id"),
    ("ItemReference", "type"),
}
#: Types that the API no longer accepts.
OUTDATED = {"ChatCompletionFunctionMessageParam"}

#: The values of strings, by type and field, or by field.
STRINGS = {
    ("ResponseOutputMessageParam", "id"): "msg_1",
    ("ResponseReasoningItemParam", "id"): "rs_1",
    "arguments": "{}",
}


def alternatives(hint: Any) -> Iterator[Any]:
    """Yield the members of a union, or else the type itself, without annotations."""
    origin = get_origin(hint)
    if origin in (Required, NotRequired, Annotated):
        yield from alternatives(get_args(hint)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(hint):
            yield from alternatives(member)
    else:
        yield hint


def example(hint: Any, *path: str) -> Any:
    """Return the smallest JSON value of a type. The SDKs' classes for responses are left out of unions.

    `path` are the type and the name of the field, if it is the value of one.
    """
    chosen = next(each for each in alternatives(hint) if not hasattr(each, "model_fields"))
    if is_typeddict(chosen):
        hints = get_type_hints(chosen, include_extras=True)
        is_total = getattr(chosen, "__total__", True)
        return {
            name: example(each, chosen.__name__, name)
            for name, each in hints.items()
            if get_origin(each) is Required
            or (is_total and get_origin(each) is not NotRequired)
            or (chosen.__name__, name) in NEEDED
        }
    if get_origin(chosen) is Literal:
        return get_args(chosen)[0]
    if chosen is str:
        return STRINGS.get(path) or STRINGS.get(path[-1], "x")  # type: ignore[call-overload]
    if chosen in (int, float, bool):
        return chosen()
    if isinstance(get_origin(chosen), type) and issubclass(get_origin(chosen), dict):
        return {}
    return [example(get_args(chosen)[0], *path)] if get_args(chosen) else {}


def examples(format: str, union: Any) -> list[Any]:
    return [
        pytest.param(format, example(each), id=each.__name__)
        for each in alternatives(union)
        if is_typeddict(each) and each.__name__ not in OUTDATED
    ]


@pytest.mark.parametrize(
    ("format", "item"),
    [*examples("openai-responses", ResponseInputItemParam), *examples("openai", ChatCompletionMessageParam)],
)
def test_a_message_of_openai(format: str, item: Any) -> None:
    dialect = get_dialect(format)
    assert dialect.message_error(item) is None
    assert dialect.render_message(dialect.parse_message(item, position=0, turn=0)) == [item]


@pytest.mark.parametrize(("format", "block"), examples("anthropic", BetaContentBlockParam))
def test_a_content_block_of_anthropic(format: str, block: Any) -> None:
    dialect = get_dialect(format)
    items = [{"role": role, "content": [block]} for role in ("user", "assistant")]
    accepted = [item for item in items if dialect.message_error(item) is None]
    assert accepted
    assert dialect.render_message(dialect.parse_message(accepted[-1], position=0, turn=0)) == accepted[-1:]
