"""Redaction of raw JSON: valid, idempotent, unchanged if clean, and independent of the encoder's escapes."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redaction import redact, redact_bytes
from sessions.selectors.redaction import redaction_key
from tests.plugins.examples import examples
from tests.redaction.secrets import IN_PLACE, KEY, TOKENS, random_text

SECRET = TOKENS[2][1]
PIECES = [secret for _, secret in TOKENS] + [text.format(secret) for _, text, secret in IN_PLACE]


def escaped_ascii(value: Any) -> bytes:
    """Escape HTML characters like Gson, and slashes like PHP."""
    return re.sub(
        r"[=<>&']|/", lambda m: "\\/" if m[0] == "/" else f"\\u{ord(m[0]):04x}", json.dumps(value)
    ).encode()


def all_escaped(value: str) -> bytes:
    return ('"' + "".join(f"\\u{ord(c):04X}" for c in value) + '"').encode()


ENCODERS = [
    orjson.dumps,
    lambda v: json.dumps(v).encode(),
    lambda v: json.dumps(v, indent=2).encode(),
    escaped_ascii,
]

texts = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(PIECES), st.sampled_from(['"', "\\", "\n", "=", " "]))
)
joined = texts.map("".join)
values = st.recursive(
    st.one_of(joined, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(joined, st.sampled_from(["password", "api_key", "content"])), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("key", ["name", "Key"])
def test_the_name_of_a_value_may_be_another_member(key: str, depth: int) -> None:
    """Environment variables in manifests and task definitions."""

    def raw_of(value: Any) -> bytes:
        for _ in range(depth):
            value = json.dumps(value, indent=2)
        return json.dumps(value).encode()

    password = "s7rong" + "Horse"
    clean, [found] = redact_bytes(raw_of([{key: "DB_PASSWORD", "value": password}]), redaction=KEY)
    assert (found.kind, found.count, password.encode() in clean) == ("credential", 1, False)
    others = raw_of([{key: "token", "value": "hello"}, {key: "password"}, {"value": password}])
    assert redact_bytes(others, redaction=KEY) == (others, ())


def test_a_header_may_be_an_object_with_its_name_and_value() -> None:
    basic = "Ym9iOlRyMHViNGRv" + "cjN4eXo5"
    clean, [found] = redact([{"name": "Authorization", "value": f"Basic {basic}"}], redaction=KEY)
    assert (found.kind, basic in str(clean)) == ("authorization", False)


def test_the_credentials_of_a_docker_configuration_are_found_in_an_object() -> None:
    basic = "Ym9iOlRyMHViNGRv" + "cjN4eXo5"
    clean, [found] = redact({"auths": {"ghcr.io": {"auth": basic}}}, redaction=KEY)
    assert (found.kind, basic in str(clean)) == ("docker-auth", False)


def test_the_name_of_a_value_in_yaml_may_be_another_member() -> None:
    text = "env:\n  - name: DB_PASSWORD\n    value: {}\n  - name: DB_TOKEN\n    valueFrom: db1token2name3\n"
    clean, _ = redact(text.format("s7rong" + "Horse"), redaction=KEY)
    assert re.fullmatch(re.escape(text).replace(r"\{\}", r"\[redacted:credential:\w+\]"), clean)


def test_passwords_in_urls_whose_slashes_are_escaped_in_json_in_a_string_are_found() -> None:
    url, password = "postgres://app:{}@db.internal/app", "s7rong" + "horse"
    inner = json.dumps({"url": url.format(password)}).replace("/", "\\/")
    clean, [found] = redact(inner, redaction=KEY)
    assert (found.kind, password in clean) == ("url-password", False)
    same = json.dumps({"url": url.format("app")}).replace("/", "\\/")
    assert redact(same, redaction=KEY) == (same, ())


def test_a_secret_that_another_one_follows_without_a_boundary_is_found() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLX"
    hook = "https://hooks.slack.com/services/" + "TXI8NERMW/B1A2B3C4D/833Tc6O6xCwSz7xypoUBaydo"
    clean, found = redact_bytes(json.dumps(key + hook).encode(), redaction=KEY)
    assert key.encode() not in clean
    assert len(found) == 2


@pytest.mark.slow
@given(values)
@settings(deadline=None, max_examples=examples(40))
def test_it_is_valid_and_idempotent(value: Any) -> None:
    raw = json.dumps(value).encode()
    once, findings = redact_bytes(raw, redaction=KEY)
    json.loads(once)
    assert (once is raw) == (findings == ())
    assert redact_bytes(once, redaction=KEY)[0] is once


@pytest.mark.slow
@given(joined, st.integers(0, len(ENCODERS) - 1))
@settings(deadline=None, max_examples=examples(40))
def test_findings_do_not_depend_on_the_encoder(text: str, encoder: int) -> None:
    expected, findings = redact({"content": text}, redaction=KEY)
    raw, found = redact_bytes(ENCODERS[encoder]({"content": text}), redaction=KEY)
    assert (json.loads(raw), found) == (expected, findings)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_secret_is_found_with_every_encoder(encoder: Any, subtests: pytest.Subtests) -> None:
    for piece in PIECES:
        with subtests.test(piece):
            value = {"content": [{"text": f'<a href="x/y">é\n{piece}\n'}]}
            raw, findings = redact_bytes(encoder(value), redaction=KEY)
            assert findings
            assert json.loads(raw)["content"][0]["text"].startswith('<a href="x/y">é\n')


def test_a_text_of_escapes_only_is_redacted() -> None:
    assert redact_bytes(all_escaped(SECRET), redaction=KEY)[1][0].kind == "anthropic-key"


def test_json_within_json_remains_valid() -> None:
    arguments = json.dumps(
        {
            "command": f'export X="1"\nexport API_KEY="{random_text("x", 30)}"\n',
            "password": "a\\1b" + random_text("q", 12),
        }
    )
    nested = json.dumps({"outer": arguments})
    raw, findings = redact_bytes(
        json.dumps({"arguments": arguments, "twice": nested}).encode(), redaction=KEY
    )
    assert sum(finding.count for finding in findings) >= 3
    assert set(json.loads(json.loads(raw)["arguments"])) == {"command", "password"}
    json.loads(json.loads(json.loads(raw)["twice"])["outer"])


def test_a_clean_message_is_the_same_object() -> None:
    raw = b'{"role":"user","content":"' + "ünï \\u0000 \\ud83d \\/ a=b".encode() * 50 + b'"}'
    assert redact_bytes(raw, redaction=KEY) == (raw, ())
    assert redact_bytes(raw, redaction=KEY)[0] is raw
    value = json.loads(raw)
    assert redact(value, redaction=KEY)[0] is value


def test_all_other_bytes_are_unchanged() -> None:
    odd = b'{ "n" : 1e400, "big":12345678901234567890123,\n"f":1.10, "t":"\\u00e9\\ud800", "s" : "%s" }'
    raw, _ = redact_bytes(odd % SECRET.encode(), redaction=KEY)
    before, after = odd.split(b"%s")
    assert raw.startswith(before + b"[redacted:anthropic-key:")
    assert raw.endswith(b"]" + after)


@pytest.mark.parametrize("odd", [b"\xff\xfe", b'"\\q ', b"{" * 5000, b'["' * 3000, b'"' + b"\\" * 999])
def test_broken_json_is_redacted_without_an_error(odd: bytes) -> None:
    redacted, _ = redact_bytes(odd + b' "' + SECRET.encode() + b'" ', redaction=KEY)
    assert isinstance(redacted, bytes)


def test_lone_surrogates_and_nul_beside_a_secret() -> None:
    raw, findings = redact_bytes(json.dumps(f"\ud800\0 {SECRET} \udfff").encode(), redaction=KEY)
    assert findings[0].count == 1
    assert json.loads(raw).startswith("\ud800\0 [redacted:")
    assert redact({"a": f"\ud800 {SECRET}"}, redaction=KEY)[1] == findings
    call = ["sshpass", "-p", "Wint" + "er2031!x\ud83d"]
    _, found = redact([call, {"\ud83d DATADOG_KEY": random_text("b", 40)}], redaction=KEY)
    assert [each.kind for each in found] == ["command-password", "datadog-access-token"]


def test_keys_of_objects_identify_secrets_and_may_be_secrets() -> None:
    value = {
        "password": "Wint" + "er2031!x",
        "Authorization": "Bearer " + random_text("b", 40),
        SECRET: 1,
        "token": "NOUN12345",
    }
    redacted, findings = redact({"input": value}, redaction=KEY)
    assert {finding.kind for finding in findings} == {"credential", "authorization", "anthropic-key"} or len(
        findings
    ) == 2
    assert redacted["input"]["password"].startswith("[redacted:credential:")
    assert redacted["input"]["Authorization"].startswith("Bearer [redacted:")
    assert redacted["input"]["token"] == "NOUN12345"
    assert SECRET not in redacted["input"]


@pytest.mark.parametrize("order", [("type", "thinking", "signature"), ("signature", "thinking", "type")])
def test_redacted_thinking_loses_its_signature(order: tuple[str, ...]) -> None:
    block = {"type": "thinking", "thinking": f"the key is {SECRET}", "signature": "c2lnbmF0dXJl"}
    other = {"type": "thinking", "thinking": "nothing", "signature": "b3RoZXI="}
    value = {"role": "assistant", "content": [other, {name: block[name] for name in order}, other]}
    redacted, _ = redact(value, redaction=KEY)
    signatures = [part["signature"] for part in redacted["content"]]
    assert signatures == ["b3RoZXI=", "", "b3RoZXI="]


def test_the_key_differs_by_project_and_is_stable() -> None:
    assert redaction_key(1) == redaction_key("1")
    assert redaction_key(1) != redaction_key(2)
