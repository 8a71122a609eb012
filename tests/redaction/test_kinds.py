"""Each kind of secret is redacted completely, and similar text is not."""

from __future__ import annotations

import base64
import json

import pytest

from redaction import Finding, Redaction, redact
from tests.redaction.secrets import (
    CLEAN,
    HEX,
    IN_PLACE,
    KEY,
    TOKENS,
    private_key,
    private_key_body,
    random_text,
)

AROUND = ("{}", "see {} there", "a\n{}\nb", '"{}"', "x={}", "\\n{}\\n", "\x1b[31m{}\x1b[0m")


@pytest.mark.parametrize(("kind", "secret"), TOKENS, ids=[f"{k}-{i}" for i, (k, _) in enumerate(TOKENS)])
def test_a_token_is_found_whole_in_any_context(kind: str, secret: str, subtests: pytest.Subtests) -> None:
    for around in AROUND:
        with subtests.test(around):
            text, findings = redact(around.format(secret), redaction=KEY)
            assert findings == (Finding(kind=kind, count=1),)
            before, _, after = around.partition("{}")
            assert text.startswith(f"{before}[redacted:{kind}:")
            assert text.endswith(f"]{after}")


@pytest.mark.parametrize(("kind", "text", "secret"), IN_PLACE)
def test_a_secret_is_recognized_by_its_context(kind: str, text: str, secret: str) -> None:
    redacted, findings = redact(text.format(secret), redaction=KEY)
    assert findings == (Finding(kind=kind, count=1),)
    before, after = text.format("\0").split("\0")
    assert redacted.startswith(before + "[redacted:")
    assert redacted.endswith("]" + after)


@pytest.mark.parametrize("text", CLEAN)
def test_common_code_is_not_redacted(text: str) -> None:
    value = {"role": "tool", "content": text}
    redacted, findings = redact(value, redaction=KEY)
    assert findings == ()
    assert redacted is value


def test_a_token_glued_to_a_word_is_redacted_but_not_within_encoded_data() -> None:
    for kind, secret in TOKENS:
        if kind in ("aws-access-key", "github-token", "google-api-key", "anthropic-key", "gitlab-token"):
            assert redact(f"keyis{secret}", redaction=KEY)[1] == (Finding(kind=kind, count=1),)
        if kind in ("aws-access-key", "google-api-key"):
            assert redact(f"{random_text('blob', 30)}{secret}", redaction=KEY)[1] == ()
    assert redact(f"task-{random_text('id', 32, HEX)}", redaction=KEY)[1] == ()


@pytest.mark.parametrize("prefix", ["4b1d", "ACCA", "EAAC", "EAAA"])
def test_a_checksum_that_contains_the_prefix_of_a_token_is_not_redacted(prefix: str) -> None:
    digits = random_text("digest", 200, HEX)
    for before in range(0, 64 - len(prefix), 4):
        digest = digits[:before] + prefix + digits[before : 64 - len(prefix)]
        digest = digest.upper() if prefix.isupper() else digest
        for text in (digest, f"sha256:{digest}", digest[:40], f"a{digest}"):
            assert redact(text, redaction=KEY)[1] == ()


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_the_body_of_a_private_key_is_redacted_completely(kind: str) -> None:
    text, findings = redact(f"$ cat key.pem\n{private_key(kind)}\n$", redaction=KEY)
    assert findings == (Finding(kind="private-key", count=1),)
    assert [line[:10] for line in text.splitlines()] == [
        "$ cat key.",
        "-----BEGIN",
        "[redacted:",
        f"-----END {kind}P"[:10],
        "$",
    ]


def test_a_private_key_with_line_numbers_is_redacted_completely() -> None:
    numbered = "\n".join(f"{n:6}→{line}" for n, line in enumerate(private_key().splitlines(), 1))
    text, _ = redact(numbered, redaction=KEY)
    assert not any(line in text for line in private_key_body().splitlines())


def test_the_lines_of_a_truncated_or_quoted_private_key_are_redacted() -> None:
    cut = private_key()[:400] + " and then words that stay"
    quoted = "\n".join(f'    "{line}\\n"' for line in private_key().splitlines())
    for text in (cut, quoted, json.dumps(private_key().splitlines())):
        redacted, findings = redact(text, redaction=KEY)
        assert findings[0].count >= 5
        assert private_key_body().splitlines()[0] not in redacted
    assert redact(cut, redaction=KEY)[0].endswith("words that stay")


def test_the_lines_after_a_private_key_in_base64_stay() -> None:
    key = base64.b64encode(private_key().encode()).decode().rstrip("=")
    text, [found] = redact(f"SSH_KEY={key}\nDB_HOST db\n", redaction=KEY)
    assert (found.kind, text.endswith("]\nDB_HOST db\n")) == ("private-key", True)


def test_several_secrets_and_overlapping_rules() -> None:
    first, second = TOKENS[2][1], TOKENS[8][1]
    text, findings = redact(f'API_KEY="{first}" token={second} again {first}', redaction=KEY)
    assert findings == (Finding(kind="anthropic-key", count=2), Finding(kind="github-token", count=1))
    assert text.count("[redacted:") == 3


def test_the_same_secret_has_the_same_placeholder_within_a_key_only() -> None:
    secret = TOKENS[0][1]
    one, two = redact(f"a {secret}", redaction=KEY)[0], redact(f"b={secret};", redaction=KEY)[0]
    assert one[2:] == two[2:-1]
    assert redact(f"a {secret}", redaction=Redaction(key=b"another key"))[0] != one


def test_a_token_with_deeply_nested_claims_is_redacted() -> None:
    parts = ('{"alg":"HS256"}', '{"a":' * 5_000 + "1" + "}" * 5_000)
    token = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    text, findings = redact(f"{token}.{random_text('signature', 43)}", redaction=KEY)
    assert findings == (Finding(kind="jwt", count=1),)
    assert text.startswith("[redacted:jwt:")
