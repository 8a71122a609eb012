"""Of examples of more than 200 kinds of secrets, at least 95% are found, in text and in JSON."""

from __future__ import annotations

from collections import Counter

import pytest

from redaction import redact
from tests.redaction.generated import PLACES, examples
from tests.redaction.secrets import HEX, KEY, password, random_text

MIN_KINDS, MIN_RECALL = 200, 0.95


def _is_found(text: str, secret: str) -> bool:
    redacted, findings = redact({"role": "tool", "content": text.format(secret)}, redaction=KEY)
    return bool(findings) and secret not in redacted["content"]


@pytest.mark.slow
def test_at_least_95_percent_of_more_than_200_kinds_are_found() -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for kind, text, secret in examples():
        total[kind] += 1
        found[kind] += _is_found(text, secret)
    missed = sorted(kind for kind in total if found[kind] < total[kind])
    assert len(total) >= MIN_KINDS
    assert sum(found.values()) / sum(total.values()) >= MIN_RECALL, missed


def test_every_named_command_and_file_is_found() -> None:
    assert [kind for kind, text, secret in PLACES if not _is_found(text, secret)] == []


def test_connection_strings_with_generated_passwords_of_any_length() -> None:
    texts = (
        "Server=db;User Id=app;Password={};",
        "postgres://app:{}@db/orders",
        "host=db user=app password={} dbname=o",
    )
    secrets = [password(f"connection{n}", 10 + n % 15) for n in range(120)]
    missed = [secret for secret in secrets for text in texts if not _is_found(text, secret)]
    assert len(missed) <= len(secrets) * len(texts) * 0.02


def test_variables_and_examples_in_these_places_are_not_secrets() -> None:
    for text in (
        "curl -u $USER:$TOKEN https://acme.io",
        "mysql -u root -p$MYSQL_PASSWORD orders",
        "mysql -u root -p orders",
        "sshpass -p ${PASS} ssh host",
        "docker run -p 8080:80 nginx && mkdir -p /srv/data1",
        "docker login -u ci -p <password> registry",
        "<password>${env.PASSWORD}</password>",
        "<password>password</password>",
        'variable "db_password" {\n  type = string\n}',
        "ConvertTo-SecureString $env:PASSWORD -AsPlainText",
        "Server=db;Password={0};",
        "postgres://app:$PASSWORD@db/orders and http://u:${P}@h",
        "Set-Cookie: theme=dark; path=/",
        "session_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "tests/a.py:1234:class:TestLogin:setup",
        "kind: SecretStore\ndata:\n  a: b",
        "npm-cache-key-" + "0123456789abcdef" * 2,
    ):
        assert redact({"content": text}, redaction=KEY)[1] == (), text


def test_similar_output_of_tools_stays() -> None:
    encoded, digest = "TE9HX0xFVkVMPWRlYnVnMQ==", random_text("digest", 64, HEX)
    for text in (
        f'{{"kind": "ConfigMap", "data": {{"a": "{encoded}"}}}}',
        f'{{"data": {{"a": "{encoded}"}}, "kind": "ConfigMap"}}',
        '{"kind": "Secret", "data": {"a": "' + "cGFzc3dvcmQ=" + '"}}',
        "CREATE USER app IDENTIFIED BY 'password' and ALTER ROLE app PASSWORD 'postgres';",
        "ALTER ROLE app PASSWORD '${DB_PASSWORD_2}'; CREATE USER a WITH PASSWORD %s",
        "hosts identified by 'web12-frontend' and a row identified as \"r2d2c3po\"",
        "grep -rn password 'src/auth2_config.py'",
        "**Password:** must have 8 characters and **Token**: JWT, RS256-signed",
        "- **Password:** Argon2id\n- **Password hash:** PBKDF2-SHA256\n- **Token:** OAuth2.0\n",
        "| Password | SHA256-hashed |\n| API key | UUIDv4 |\n| Token | 128-bit |",
        f"https://registry.acme.io/app@sha256:{digest} https://git@github.com/acme/{digest}",
        f"cache_key_{digest} and build_key_{digest[:40]}",
        "https://medium.com/@user1234567890abcdef and https://deploy-user-of-acme@host/x",
        '{"Type": "String", "Value": "s7rong-value"} {"sensitive": false, "value": "s7rong-value"}',
        "aws ssm put-parameter --name /a --type String --value ami-0a1b2c3d4e5f6",
        "--from-literal=LOG_LEVEL=debug12345 curl -u user: https://acme.io",
        "https://acme.logic.azure.com/workflows/1?sig=example",
        '"keyName": "key1", "value": "' + "s7rong" + '"',
    ):
        assert redact({"content": text}, redaction=KEY)[1] == (), text
