"""For any pushed messages: no crash, a valid and deterministic prompt, and the session continues."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import PRESETS, Budget
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from compaction.view.components import Components
from tests.compaction.builders import COUNTER, faults, parse
from tests.compaction.gemini_checks import faults as gemini_faults
from tests.plugins.examples import examples

#: Strings that UTF-8 or Postgres rejects. Pushes reject lone surrogates, but JSON arguments may contain them.
odd = st.sampled_from(
    [
        "\ud800",
        "\0",
        "a\udfff b_1 \0 src/x.py:12",
        "Error: \ud800 boom_1",
        "because \udc00 we must use x_1.",
        "\ud83d" * 90,
    ]
)
texts = st.one_of(
    st.text(max_size=40),
    st.tuples(odd, st.integers(1, 90)).map(lambda pair: "\n".join([pair[0]] * pair[1])),
    st.sampled_from(["", " ", "\n", "ok", "Error: boom", "[Output not shown; handle h_1]", "漢字" * 50]),
    st.integers(1, 400).map(lambda n: "\n".join(f"name_{i} = {i}" for i in range(n))),
    st.integers(1, 60).map(lambda n: json.dumps([{"id": i, "path": f"src/m{i}.py"} for i in range(n)])),
)
ids = st.sampled_from(["a", "b", "c", "call_0", "functions.run:1", "", "x y", "é", "\ud800\0"])
names = st.sampled_from(["Read", "bash", "edit_file", "grep", "plan", "\ud800\0"])
arguments = st.one_of(
    st.sampled_from(["{}", '{"path": "a.py"}', '{"command": "cat b.py"}', "[]", "no json", "", '{"a": 1e9}']),
    st.text(max_size=30),
    st.tuples(st.sampled_from(["command", "path", "x"]), odd, st.booleans()).map(
        lambda chosen: json.dumps({chosen[0]: f"cat {chosen[1]}"}, ensure_ascii=chosen[2])
    ),
)


@st.composite
def openai_messages(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["system", "user", "assistant", "calls", "tool", "tool"]))
    if kind == "tool":
        return {"role": "tool", "tool_call_id": draw(ids), "content": draw(texts)}
    if kind != "calls":
        return {"role": kind, "content": draw(texts)}
    wanted = draw(st.lists(st.tuples(ids, names, arguments), min_size=1, max_size=4))
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in wanted]
    return {"role": "assistant", "content": draw(st.none() | texts), "tool_calls": made}


@st.composite
def anthropic_messages(draw: st.DrawFn) -> dict[str, Any]:
    block = st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, texts),
        st.builds(
            lambda i, n, t: {"type": "tool_use", "id": i, "name": n, "input": {"command": t}},
            ids,
            names,
            texts,
        ),
        st.builds(lambda i, t: {"type": "tool_result", "tool_use_id": i, "content": t}, ids, texts),
        st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": "s"}, texts),
        st.just({"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}),
    )
    content = draw(st.one_of(texts, st.lists(block, max_size=5)))
    return {"role": draw(st.sampled_from(["user", "assistant"])), "content": content}


@st.composite
def responses_items(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["user", "assistant", "developer", "reasoning", "call", "output", "output"]))
    match kind:
        case "call":
            call = {"type": "function_call", "id": "fc_1", "call_id": draw(ids), "name": draw(names)}
            return {**call, "arguments": draw(arguments)}
        case "output":
            return {"type": "function_call_output", "call_id": draw(ids), "output": draw(texts)}
        case "reasoning":
            content = draw(st.sampled_from(["opaque", None]))
            return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": content}
    return {"type": "message", "role": kind, "content": draw(texts)}


@st.composite
def gemini_contents(draw: st.DrawFn) -> dict[str, Any]:
    part = st.one_of(
        st.builds(lambda t: {"text": t}, texts),
        st.builds(lambda t: {"text": t, "thought": True}, texts),
        st.builds(lambda t: {"text": t, "thoughtSignature": "c2ln"}, texts),
        st.builds(lambda n, t: {"functionCall": {"name": n, "args": {"command": t}}}, names, texts),
        st.builds(
            lambda i, n: {"functionCall": {"id": i, "name": n}, "thoughtSignature": "c2ln"}, ids, names
        ),
        st.builds(lambda n, t: {"functionResponse": {"name": n, "response": {"output": t}}}, names, texts),
        st.builds(
            lambda i, n, t: {"functionResponse": {"id": i, "name": n, "response": {"a": t, "b": 1}}},
            ids,
            names,
            texts,
        ),
        st.just({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        st.just({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
    )
    return {"role": draw(st.sampled_from(["user", "model"])), "parts": draw(st.lists(part, max_size=5))}


transcripts = st.one_of(
    st.tuples(st.just("openai"), st.lists(openai_messages(), max_size=30)),
    st.tuples(st.just("anthropic"), st.lists(anthropic_messages(), max_size=20)),
    st.tuples(st.just("openai-responses"), st.lists(responses_items(), max_size=40)),
    st.tuples(st.just("gemini"), st.lists(gemini_contents(), max_size=20)),
)
models = st.builds(
    Capabilities, prefill=st.booleans(), bound_thinking=st.booleans(), thought_signatures=st.booleans()
)
quick = settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@quick
@given(transcripts, st.sampled_from(sorted(PRESETS)), st.integers(1, 4_000), models, st.integers(0, 300))
def test_any_transcript_gives_a_valid_prompt(
    transcript: tuple[str, list[dict[str, Any]]], policy: str, budget: int, model: Capabilities, tools: int
) -> None:
    source, items = transcript
    messages = parse(items, source)
    view = apply((), messages, components=Components(tools=tools))
    limit = Budget(input_tokens=budget)
    made = plan(
        PlanRequest(view=view, policy=PRESETS[policy], counter=COUNTER, budget=limit, capabilities=model)
    )
    assert made.view.tokens <= view.tokens
    assert made.fits == (made.view.tokens <= budget)
    assert made.fits or made.reason
    assert apply(made.edits, messages, components=Components(tools=tools)).messages == made.view.messages
    assert (
        plan(
            PlanRequest(view=view, policy=PRESETS[policy], counter=COUNTER, budget=limit, capabilities=model)
        ).edits
        == made.edits
    )
    for format in dialects.DIALECTS:
        shown = render(made.view.messages, format=format, capabilities=model).messages
        assert validate(shown, format, capabilities=model) == ()
        assert faults(shown, format) == []
        if format == "gemini":
            assert list(gemini_faults(shown, signatures=model.thought_signatures)) == []


@pytest.mark.slow
@quick
@given(transcripts)
def test_a_repair_is_done_once(transcript: tuple[str, list[dict[str, Any]]]) -> None:
    source, items = transcript
    once = render(parse(items, source), format=source)
    again = render(dialects.parse(once.messages, format=source), format=source, system=once.system)
    assert again.messages == once.messages


@pytest.mark.slow
@quick
@given(st.lists(openai_messages(), min_size=4, max_size=40), st.integers(60, 1_500), st.data())
def test_a_session_continues_after_its_compactions(
    items: list[dict[str, Any]], budget: int, data: st.DataObject
) -> None:
    messages = parse(items)
    edits: tuple[Any, ...] = ()
    previous = None
    policy = PRESETS[data.draw(st.sampled_from(["baseline", "masking", "balanced", "aggressive"]))]
    pinned = data.draw(st.sets(st.integers(0, len(items) - 1), max_size=2))
    messages = tuple(replace(m, pinned=m.position in pinned) for m in messages)
    for count in range(2, len(items) + 1, 3):
        view = apply(edits, messages[:count])
        limit = Budget(input_tokens=budget)
        made = plan(PlanRequest(view=view, policy=policy, counter=COUNTER, budget=limit, previous=previous))
        edits, previous = edits + made.edits, made.recap
        assert apply(edits, messages[:count]).messages == made.view.messages
        for format in dialects.DIALECTS:
            shown = render(made.view.messages, format=format).messages
            assert validate(shown, format) == ()
        for position in pinned:
            if position < count:
                assert any(shown is messages[position] for shown in made.view.messages)
