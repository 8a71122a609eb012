"""Lists in request bodies are parsed together with the exact bytes of their elements."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.store.rawjson import BadJson, TooDeep, list_start, read_list, with_field

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text('ab[]{"\\,', max_size=4), children)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    elements=st.lists(JSON, min_size=1, max_size=4),
    before=JSON,
    after=JSON,
    indent=st.sampled_from([None, 0, 2]),
)
def test_elements_keep_their_bytes(elements, before, after, indent) -> None:
    body = json.dumps({"before": before, "messages": elements, "after": after}, indent=indent).encode()
    start = list_start(body, "messages")
    assert start is not None
    fields, values, spans = read_list(body, "messages", start)
    assert (fields, values) == ({"before": before, "after": after}, elements)
    found = [body[begin:end] for begin, end in spans]
    assert [json.loads(each) for each in found] == elements
    assert all(each == each.strip() for each in found)


def test_numbers_stay_as_sent_beside_other_fields() -> None:
    body = b'{"messages" : [ {"n": 1e5},\n12345678901234567890 ] , "system": "Be brief."}'
    start = list_start(body, "messages")
    assert start is not None
    fields, _, spans = read_list(body, "messages", start)
    assert fields == {"system": "Be brief."}
    assert [body[begin:end] for begin, end in spans] == [b'{"n": 1e5}', b"12345678901234567890"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"messages": [1, 2}', BadJson),
        (b'{"messages": ["\\ud800"]}', BadJson),
        (b'{"messages": [NaN], "a": 1}', BadJson),
        (b'{"messages": [%b1%b]}' % (b"[" * 99, b"]" * 99), TooDeep),
        (b'{"messages": [1], "a": %b1%b}' % (b"[" * 100, b"]" * 100), TooDeep),
    ],
)
def test_invalid_bodies_are_rejected(body: bytes, error: type[BadJson]) -> None:
    start = list_start(body, "messages")
    assert start is not None
    with pytest.raises(error):
        read_list(body, "messages", start)


def test_a_name_that_occurs_twice_has_the_last_value_and_no_spans() -> None:
    assert read_list(b'{"messages": [1], "messages": [2]}', "messages", 14) == ({}, [2], [])


def set_and_reset(body: bytes, value: object) -> None:
    """Set the field "a", and if there was one, set it back: then every byte must be as before.

    The space between the colon and the value belongs to the value.
    """
    fields, new = json.loads(body), json.dumps(value).encode()
    changed = with_field(body, "a", new)
    assert json.loads(changed) == fields | {"a": value}
    if "a" in fields:
        assert with_field(changed, "a", b" " + json.dumps(fields["a"]).encode()) == body
    else:
        assert changed.endswith(body[body.index(b"{") + 1 :])


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b' { "b" : 1 } ',
        b'{"a": 1}',
        b'{"b": {"a": [1]}, "a": {"a": "}", "b": [",", {}]}, "c": "\\"a\\": 2"}',
        b'{"b": ["a", {"a": 1}], "a": [[1, 2], {"c": ","}]}',
        b'{"b": "a", "c": [1,\n 2]\n}',
    ],
)
def test_a_field_is_set_without_changing_other_bytes(body: bytes) -> None:
    set_and_reset(body, {"type": "x", "n": [1, "]"]})


@pytest.mark.slow
@given(fields=st.dictionaries(st.text('ab[]{"\\,', max_size=2), JSON, max_size=4), value=JSON)
def test_any_field_is_set_without_changing_other_bytes(fields, value) -> None:
    set_and_reset(json.dumps(fields).encode(), value)
