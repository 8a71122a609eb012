"""Examples of every kind of secret, generated at run time so that scanners do not report this folder."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from redaction.gitleaks import gitleaks_rules
from redaction.known_tokens import PREFIXED
from tests.redaction.secrets import (
    HEX,
    IN_PLACE,
    TOKENS,
    UPPER,
    WORD,
    password,
    private_key,
    private_key_body,
    random_text,
)
from tests.redaction.tool_places import TOOL_PLACES

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def example_of(pattern: str, seed: str) -> str:
    """Return a random string that the pattern matches. Supports what the rules of gitleaks use."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace("(?i)", "").replace(r"\z", r"\Z")
    source = random.Random(seed)
    return "".join(_generated(_parser.parse(pattern), source))


def _generated(nodes: Any, source: random.Random) -> Iterator[str]:
    for kind, value in nodes:
        if kind is op.LITERAL:
            yield chr(value)
        elif kind is op.ANY:
            yield source.choice(WORD)
        elif kind is op.IN:
            yield source.choice(_members(value))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, inner = value
            for _ in range(max(low, min(high, 1))):
                yield from _generated(inner, source)
        elif kind is op.SUBPATTERN:
            yield from _generated(value[3], source)
        elif kind is op.BRANCH:
            yield from _generated(source.choice(value[1]), source)


def _members(items: Any) -> str:
    allowed = "".join(c for c in _SAFE + "+/=.%: " if _is_member(items, c))
    plain = "".join(c for c in allowed if c.isalnum())
    return plain or allowed


def _is_member(items: Any, character: str) -> bool:
    negated = items[0][0] is op.NEGATE
    text = any(
        (kind is op.LITERAL and chr(value) == character)
        or (kind is op.RANGE and value[0] <= ord(character) <= value[1])
        or (
            kind is op.CATEGORY
            and re.fullmatch({op.CATEGORY_WORD: r"\w", op.CATEGORY_DIGIT: r"\d"}.get(value, r"\s"), character)
        )
        for kind, value in items
    )
    return text != negated


_BASIC = base64.b64encode(f"deploy:{password('basic')}".encode()).decode()
_KEY = "".join(private_key_body(3).split())

#: Kind, text with `{}` in place of the secret, and the secret: commands, files, services without a prefix.
PLACES: tuple[tuple[str, str, str], ...] = (
    ("kubeconfig client key", "users:\n- name: admin\n  user:\n    client-key-data: {}\n", _KEY),
    ("kubeconfig token", "users:\n- name: ci\n  user:\n    token: {}\n", random_text("kube", 40)),
    (
        "Kubernetes secret",
        "apiVersion: v1\nkind: Secret\ndata:\n  DB: {}\n",
        base64.b64encode(b"Rz8vKq2LmP4x").decode(),
    ),
    ("dockerconfig auth", '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}', _BASIC),
    (".npmrc _auth", "//npm.acme.io/:_auth={}\n", _BASIC),
    ("Discord webhook", "https://discord.com/api/webhooks/123456789012345678/{}", random_text("dw", 68)),
    ("Square", "{}", "sq0" + "atp-" + random_text("sqa", 22)),
    ("Mailgun", "MAILGUN={}", "key-" + random_text("mg", 32, HEX)),
    ("Datadog", "DD_API_KEY={}", random_text("dd", 32, HEX)),
    ("Notion", "NOTION_TOKEN={}", "secret" + "_" + random_text("no", 43)),
    ("Cloudflare", "CLOUDFLARE_API_TOKEN={}", random_text("cf", 40)),
    ("Atlassian", "{}", "ATA" + "TT3xFfGF0" + random_text("at", 180)),
    ("Sentry DSN", "https://{}@o42.ingest.sentry.io/7", random_text("se", 32, HEX)),
    ("RubyGems", ":rubygems_api_key: {}", "ruby" + "gems_" + random_text("rg", 48, HEX)),
    ("PlanetScale", "{}", "psc" + "ale_tkn_" + random_text("ps", 43)),
    (
        "LangSmith",
        "LANGSMITH_API_KEY={}",
        "ls" + "v2_pt_" + random_text("ls", 32, HEX) + "_" + random_text("l", 10, HEX),
    ),
    (
        "Tailscale",
        "tailscale up --authkey {}",
        "ts" + "key-auth-" + random_text("ts", 12) + "-" + random_text("t2", 32),
    ),
    ("Facebook", "{}", "EA" + "AG" + random_text("fb", 150)),
    (".netrc", "machine api.acme.io\n  login ci\n  password {}\n", password("netrc")),
    (".netrc on one line", "machine api.acme.io login ci password {}", password("netrc1", 12)),
    (".pgpass", "db.internal:5432:orders:app:{}\n", password("pgpass")),
    ("curl -u", "curl -s -u deploy:{} https://acme.io/x", password("curl")),
    ("curl --user", 'curl --user "deploy:{}" https://acme.io/x', password("curl2", 12)),
    ("mysql -p", "mysql -h db -u app -p{} orders", password("mysql")),
    ("mysqldump -p", "mysqldump -uapp -p'{}' orders > x.sql", password("mysql2", 10)),
    ("sshpass", "sshpass -p {} ssh root@10.0.0.1", password("sshpass", 10)),
    ("sshpass, quoted", "sshpass -p '{}' scp a root@10.0.0.1:", password("sshpass2")),
    ("docker login", "docker login -u ci -p {} registry.acme.io", password("docker")),
    ("docker login from a pipe", "echo {} | docker login -u ci --password-stdin", password("docker2")),
    ("sudo from a pipe", "echo '{}' | sudo -S apt-get install x", password("sudo", 11)),
    ("chpasswd", "echo 'deploy:{}' | chpasswd", password("chpasswd", 12)),
    ("az login", "az login --service-principal -u app -p {} --tenant t", password("az", 34)),
    ("redis-cli -a", "redis-cli -h cache -a {} ping", password("redis")),
    ("ldapsearch -w", "ldapsearch -x -D cn=admin -w {} -b dc=acme", password("ldap", 12)),
    ("sqlcmd -P", "sqlcmd -S db -U sa -P {} -Q 'select 1'", password("sqlcmd")),
    ("plink -pw", "plink.exe -ssh root@10.0.0.1 -pw {} uptime", password("plink", 12)),
    ("mongosh -p", "mongosh --host db -u app -p {} orders", password("mongo")),
    ("openssl -passin", "openssl rsa -in k.pem -passin pass:{} -out o.pem", password("ossl", 14)),
    ("keytool -storepass", "keytool -list -keystore k.jks -storepass {}", password("kt", 14)),
    ("htpasswd -b", "htpasswd -bc .htpasswd admin {}", password("ht", 14)),
    ("rabbitmqctl", "rabbitmqctl add_user app {}", password("rabbit", 14)),
    ("smbclient -U", "smbclient //nas/share -U acme%{}", password("smb", 14)),
    ("7z -p", "7z x backup.7z -p{}", password("zip7", 14)),
    ("unzip -P", "unzip -P {} backup.zip", password("zip", 14)),
    ("wget --password", "wget --user=ci --password={} https://acme.io", password("wget", 14)),
    ("PGPASSWORD", "PGPASSWORD={} psql -h db", password("pg", 14)),
    ("psql DSN", 'psql "host=db user=app password={} dbname=orders"', password("dsn")),
    ("<password>", "<server><username>ci</username><password>{}</password></server>", password("xml", 12)),
    ("<add key= value=>", '<add key="SmtpPassword" value="{}" />', password("addkey", 14)),
    (
        "Terraform default",
        'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}',
        password("tf", 12),
    ),
    ("terraform.tfvars", 'db_password = "{}"', password("tfvars", 24)),
    ("PowerShell SecureString", '$p = ConvertTo-SecureString "{}" -AsPlainText -Force', password("posh", 12)),
    ("PowerShell -Password", 'New-LocalUser deploy -Password "{}"', password("posh2", 14)),
    ("PowerShell environment", '$env:DB_PASSWORD = "{}"', password("posh3", 14)),
    ("wpa_supplicant psk", 'network={{\n  ssid="office"\n  psk="{}"\n}}', password("psk", 16)),
    ("IPsec PSK", '10.0.0.1 : PSK "{}"', password("ipsec", 20)),
    ("hostapd", "wpa_passphrase={}", password("hostapd", 16)),
    ("session cookie", "Cookie: theme=dark; sessionid={}", random_text("sid", 32, HEX + "ghijk")),
    ("PHPSESSID", "Set-Cookie: PHPSESSID={}; path=/", random_text("php", 26)),
    ("JSESSIONID", "JSESSIONID={}; HttpOnly", random_text("js", 32, UPPER)),
    ("curl -b", "curl -b 'auth_session={}' https://acme.io", random_text("cb", 40)),
    ("cookies.txt", "acme.io\tFALSE\t/\tTRUE\t0\tsessionid\t{}\n", random_text("ck", 32)),
    ("ssh config", "Host build\n  User ci\n  # password: {}\n", password("sshc", 14)),
    (
        "ssh config ProxyCommand",
        "Host b\n  ProxyCommand sshpass -p {} ssh -W %h:%p j\n",
        password("sshp", 14),
    ),
    ("Ansible inventory", "web1 ansible_user=ci ansible_ssh_pass={}", password("ans", 14)),
    ("SMTP_PASS", "SMTP_PASS={}", password("smtp", 14)),
    ("URL password with $", "postgres://app:{}@db.internal/orders", "pa$" + password("dollar", 10)),
    ("URL password with a $ in the end", "amqp://app:{}@mq/", password("dollar2", 12) + "$x"),
    ("URL password in code", 'url = "redis://:{}@cache:6379/0"', password("urlc", 18)),
    ("ADO.NET connection string", "Server=db;Database=o;User Id=app;Password={};", password("ado")),
    ("ADO.NET, password first", "Password={};Server=db;User Id=app", password("ado2")),
    ("JDBC", "jdbc:mysql://db:3306/o?user=app&password={}", password("jdbc")),
    ("ODBC", "Driver=x;Server=db;UID=app;PWD={};Encrypt=yes", password("odbc")),
    (
        "Azure service bus",
        "Endpoint=sb://x/;SharedAccessKeyName=r;SharedAccessKey={}",
        random_text("sb", 43) + "=",
    ),
    ("JSON member of a service", '{{"env": {{"ALGOLIA_ADMIN": "{}"}}}}', random_text("alg", 32, HEX)),
    ("WireGuard", "[Interface]\nPrivateKey = {}\n", random_text("wg", 43) + "="),
    ("private key in base64", "SSH_KEY: {}\n", base64.b64encode(private_key().encode()).decode()),
    (
        "private key in lines of base64",
        "key:\n{}",
        base64.encodebytes(private_key("EC ").encode()).decode().strip(),
    ),
    (
        "service account in base64",
        "$ echo {}",
        base64.b64encode(b'{"type": "service_account", "private_key": "' + _KEY.encode()).decode(),
    ),
    ("Docker configuration as an object", '{{"auth": "{}"}}', _BASIC),
    ("Authorization with another scheme", "Authorization: SSWS {}", random_text("ssws", 42)),
    ("Authorization in a list of bytes", "[(b'authorization', b'Basic {}')]", _BASIC),
    ("HTTP basic header", "Authorization: Basic {}", _BASIC),
    ("X-Api-Key header", "X-Api-Key: {}", random_text("xapi", 40)),
    *TOOL_PLACES,
)

#: Texts around a token without context.
_AROUND = (
    "TOKEN={}\n",
    "the key is {}, keep it",
    '{{"env": {{"A": "{}"}}}}',
    "curl -H 'X-Key: {}' https://a.io",
    "({})",
)


def examples() -> Iterator[tuple[str, str, str]]:
    """Yield kind, text and secret."""
    yield from PLACES
    for kind, text, secret in IN_PLACE:
        yield kind, text, secret
    for kind, secret in TOKENS:
        yield kind, "see {} there", secret
    for around, (kind, prefix, characters, count) in enumerate(PREFIXED):
        secret = example_of(f"{prefix}{characters}{{{count.rstrip(',').split(',')[0]}}}", prefix)
        yield f"{kind} ({prefix[:12]})", _AROUND[around % len(_AROUND)], secret
    for rule in gitleaks_rules():
        for seed in range(2):
            yield rule.kind, *_gitleaks_example(rule, seed)


def _gitleaks_example(rule: Any, seed: int) -> tuple[str, str]:
    for attempt in range(200):
        text = example_of(rule.body, f"{rule.kind}{seed}{attempt}")
        match = next(
            iter(
                re.finditer(
                    rule.body.replace("(?i)", "")
                    .replace("[[:alnum:]]", r"[A-Za-z0-9]")
                    .replace(r"\z", r"\Z"),
                    text,
                    re.IGNORECASE,
                )
            ),
            None,
        )
        group = rule.group if rule.group is not None else min(1, match.re.groups if match else 0)
        if match and match[group] and rule.accepts(match[group]):
            before, after = text[: match.start(group)], text[match.end(group) :]
            return f"{before}{{}}{after}".replace("{}", "\0").replace("{", "{{").replace("}", "}}").replace(
                "\0", "{}"
            ), match[group]
    raise AssertionError(f"no example of {rule.kind}")
