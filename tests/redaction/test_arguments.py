"""Passwords in lists of arguments, in JSON at any depth, in code and in YAML."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from redaction import redact, redact_bytes
from tests.redaction.secrets import KEY, password, random_text

PASSWORD, TOKEN = password("arguments", 14), random_text("arguments", 40)

#: Arguments, and the secret in them.
LISTS = (
    (["deploy", "--password", PASSWORD, "now"], PASSWORD),
    (["login", "--token", TOKEN], TOKEN),
    (["sshpass", "-p", PASSWORD, "ssh", "host"], PASSWORD),
    (["/usr/bin/sshpass", "-p", PASSWORD], PASSWORD),
    (["mysql", "-u", "root", f"-p{PASSWORD}", "orders"], PASSWORD),
    (["curl", "-s", "-u", f"ci:{PASSWORD}", "https://acme.io"], PASSWORD),
    (["docker", "login", "-u", "ci", "-p", PASSWORD, "registry.acme.io"], PASSWORD),
    (["redis-cli", "-a", PASSWORD, "ping"], PASSWORD),
)

#: Lists that have no secrets.
CLEAN = (
    ["docker", "run", "-p", "8080:80", "nginx"],
    ["mkdir", "-p", "/srv/data1/x9y8z7"],
    ["ssh", "-p", "22022", "host1"],
    ["sshpass", "-p", "$PASSWORD", "ssh"],
    ["deploy", "--password", "$DB_PASSWORD1"],
    ["deploy", "--password", "--verbose2"],
    ["deploy", "--password-file", "/run/secrets/db1"],
    ["password", "address2line", "user2name"],
    ["token", "sha256_with_rsa2048", "x"],
    ["mysql", "-p", "orders2031"],
    ["Authorization", "Content-Type", "X-Request-Id"],
)


def written(arguments: Sequence[str]) -> list[str]:
    """Return the arguments in JSON, in code, in YAML, and in JSON strings within JSON."""
    texts = [
        json.dumps({"args": arguments}),
        json.dumps({"args": arguments}, indent=2),
        f"subprocess.run({list(arguments)!r}, check=True)",
        "args:\n" + "".join(f"  - {argument}\n" for argument in arguments),
        "args:\n" + "".join(f'  - "{argument}"\n' for argument in arguments),
    ]
    for _ in range(3):
        texts += [json.dumps({"input": text}) for text in texts[-5:]]
    return texts


@pytest.mark.parametrize(("arguments", "secret"), LISTS, ids=[arguments[0] for arguments, _ in LISTS])
def test_a_password_in_a_list_of_arguments_is_found(
    arguments: list[str], secret: str, subtests: pytest.Subtests
) -> None:
    for text in written(arguments):
        raw = text.encode() if text.startswith("{") else json.dumps(text).encode()
        with subtests.test(text):
            clean, [found] = redact_bytes(raw, redaction=KEY)
            assert (found.count, secret.encode() in clean) == (1, False)
            before, after = raw.split(secret.encode())
            assert clean.startswith(before + b"[redacted:")
            assert clean.endswith(b"]" + after)


def test_lists_without_passwords_are_unchanged() -> None:
    for arguments in CLEAN:
        for text in written(arguments):
            assert redact(text, redaction=KEY)[1] == (), text
            if text.startswith("{"):
                assert redact_bytes(text.encode(), redaction=KEY)[1] == (), text


def test_a_header_may_be_a_list_of_its_name_and_value() -> None:
    basic = "Ym9iOlRyMHViNGRv" + "cjN4eXo5"
    clean, [found] = redact([["Authorization", f"Basic {basic}"]], redaction=KEY)
    assert (found.kind, basic in str(clean)) == ("authorization", False)


def test_an_argument_with_spaces_is_redacted_completely() -> None:
    secret = f"{PASSWORD} {PASSWORD[:5]}"
    clean, _ = redact({"args": ["curl", "-u", f"ci:{secret}", "https://acme.io"]}, redaction=KEY)
    assert clean["args"][2].startswith("ci:[redacted:command-password:")
    assert PASSWORD[:5] not in str(clean)
