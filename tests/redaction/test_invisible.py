"""Invisible characters do not hide a secret, and stay in strings without secrets."""

from __future__ import annotations

import json

import pytest

from redaction import redact, redact_bytes
from tests.redaction.secrets import KEY, TOKENS

KIND, SECRET = TOKENS[8]


@pytest.mark.parametrize("character", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\xad", "\0"])
def test_a_token_interrupted_by_invisible_characters_is_found(character: str) -> None:
    hidden = character.join((SECRET[:2], SECRET[2:9], SECRET[9:20], SECRET[20:]))
    expected = redact(f"the token {SECRET} of", redaction=KEY)
    value = f"the token {hidden} of"
    for raw in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        clean, findings = redact_bytes(raw.encode(), redaction=KEY)
        assert (json.loads(clean), findings) == expected
    nested = json.dumps({"text": json.dumps({"token": hidden})})
    clean, [found] = redact_bytes(nested.encode(), redaction=KEY)
    assert (found.kind, SECRET[20:].encode() in clean) == (KIND, False)
    json.loads(json.loads(clean)["text"])


def test_secrets_in_text_of_utf_16_are_found() -> None:
    password = "Wint" + "er2031!x"
    text = f"export GITHUB_TOKEN={SECRET}\nDB_PASSWORD={password}\n"
    clean, found = redact({"content": text.encode("utf-16-le").decode("latin-1")}, redaction=KEY)
    assert sum(finding.count for finding in found) == 2
    assert SECRET[20:] not in clean["content"].replace("\0", "")
    assert password[2:] not in clean["content"].replace("\0", "")


def test_invisible_characters_without_a_secret_are_unchanged() -> None:
    for text in (
        "👩\u200d👩\u200d👧 soft\xadware zero\u200bwidth",
        "a\0b\0c\0",
        "می\u200cخواهم",
        "\ufeffimport os",
    ):
        raw = json.dumps({"content": text, "other": SECRET}, ensure_ascii=False).encode()
        clean, [found] = redact_bytes(raw, redaction=KEY)
        assert (found.kind, json.loads(clean)["content"]) == (KIND, text)
