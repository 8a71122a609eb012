"""Fake secrets, generated at run time so that secret scanners do not report this folder."""

from __future__ import annotations

import base64
import hashlib
import random

from redaction import Redaction

KEY = Redaction(key=b"a key of the tests, 32 bytes long")

WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0123456789abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random_text(seed: str, length: int, alphabet: str = WORD) -> str:
    """Return a seeded random text in which letters and digits alternate often, as in real tokens."""
    source = random.Random(hashlib.sha256(seed.encode()).digest())
    return "".join(source.choice(alphabet) for _ in range(length))


def password(seed: str, length: int = 18) -> str:
    """Return a password as generators make them: letters and at least one digit."""
    return random_text(seed, length - 2) + random_text(f"{seed}d", 1, "23456789") + "k"


def jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"A B"}')
    head, claims = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return f"{head}.{claims}.{random_text('jwt', 43)}"


def private_key_body(lines: int = 12) -> str:
    return (
        "\n".join(random_text(f"pem{line}", 64) for line in range(lines))
        + "\n"
        + random_text("end", 31)
        + "="
    )


def private_key(kind: str = "RSA ") -> str:
    dashes = "-" * 5
    begin, end = (f"{dashes}{word} {kind}PRIVATE KEY{dashes}" for word in ("BEGIN", "END"))
    return f"{begin}\n{private_key_body()}\n{end}"


#: Kind, and a secret of this kind.
TOKENS: tuple[tuple[str, str], ...] = (
    ("aws-access-key", "AKI" + "A" + random_text("aws", 16, UPPER)),
    ("aws-access-key", "ASI" + "A" + random_text("sts", 16, UPPER)),
    ("anthropic-key", "sk-" + "ant-api03-" + random_text("ant", 93) + "AA"),
    ("openai-key", "sk-" + "proj-" + random_text("oai", 48)),
    ("openai-key", "sk-" + random_text("oa1", 20) + "T3Blbk" + "FJ" + random_text("oa2", 20)),
    ("openrouter-key", "sk-" + "or-v1-" + random_text("or", 64, HEX)),
    ("sk-key", "sk-" + random_text("sk", 40, HEX)),
    ("contextapp-key", "ctx" + "_" + random_text("p", 8, HEX) + "_" + random_text("ctx", 43)),
    ("github-token", "gh" + "p_" + random_text("gh", 36)),
    ("github-token", "github" + "_pat_" + random_text("gh1", 22) + "_" + random_text("gh2", 59)),
    ("gitlab-token", "glp" + "at-" + random_text("gl", 20)),
    ("slack-token", "xox" + "b-" + "1234567890-" + "1234567890123-" + random_text("slack", 24)),
    (
        "slack-token",
        "https://hooks.slack"
        ".com/services/T" + random_text("t", 8, UPPER) + "/B1A2B3C4D/" + random_text("h", 24),
    ),
    ("stripe-key", "sk" + "_live_" + random_text("stripe", 24)),
    ("stripe-key", "rk" + "_test_" + random_text("stripe2", 24)),
    ("npm-token", "np" + "m_" + random_text("npm", 36)),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + random_text("pypi", 90)),
    ("sendgrid-key", "S" + "G." + random_text("sg1", 22) + "." + random_text("sg2", 43)),
    ("square-secret", "sq0" + "csp-" + random_text("sq", 43)),
    ("telegram-token", random_text("tg0", 9, "123456789") + ":" + random_text("tg", 35)),
    ("twilio-key", "S" + "K" + random_text("tw", 32, HEX)),
    ("discord-token", "M" + random_text("d1", 23) + "." + random_text("d2", 6) + "." + random_text("d3", 27)),
    ("mailchimp-key", random_text("mc", 32, HEX) + "-us" + "12"),
    ("artifactory-key", "AK" + "C" + random_text("af", 70)),
    ("azure-storage-key", "Account" + "Key=" + random_text("az", 86) + "=="),
    ("azure-client-secret", random_text("a1", 3) + "8Q" + "~" + random_text("a2", 34)),
    ("azure-sas", "si" + "g=" + random_text("sas", 43) + "%3D"),
    ("google-api-key", "AIz" + "a" + random_text("goog", 35)),
    ("google-oauth-secret", "GOC" + "SPX-" + random_text("gs", 28)),
    ("google-oauth-token", "ya" + "29." + random_text("ya", 60)),
    ("huggingface-token", "h" + "f_" + random_text("hf", 34)),
    ("groq-key", "gs" + "k_" + random_text("groq", 52)),
    ("vault-token", "hv" + "s." + random_text("vault", 90)),
    ("digitalocean-token", "do" + "p_v1_" + random_text("do", 64, HEX)),
    ("databricks-token", "dap" + "i" + random_text("dbx", 32, HEX)),
    ("age-key", "AGE-SECRET" + "-KEY-1" + random_text("age", 58, UPPER)),
    ("jwt", jwt()),
)

#: Kind, text with `{}` in place of the secret, and the secret.
IN_PLACE: tuple[tuple[str, str, str], ...] = (
    ("aws-access-key", 'aws_secret_access_key = "{}"', random_text("awss", 40)),
    ("credential", "aws_secret_access_key = {}", random_text("awss", 40)),
    ("credential", "export DB_PASSWORD={}\n", "Wint" + "er2031!x"),
    ("credential", "DB_PASSWORD='{}'", "Wint" + "er2031!x"),
    ("credential", "mysql --password={} -h db", "Wint" + "er2031!x"),
    ("credential", "deploy --api-key {} now", random_text("flag", 24)),
    ("credential", '{{"password": "{}"}}', "Wint" + "er2031!x"),
    ("credential", 'api_key = "{}"', random_text("ak", 32)),
    ("credential", "client_secret: {}", random_text("cs", 32, HEX)),
    ("credential", "X-Api-Key: {}\r\n", random_text("xak", 32, HEX)),
    ("credential", "https://host/path?access_token={}&x=1", random_text("at", 32)),
    ("credential", '{{\\"auth_token\\": \\"{}\\"}}', random_text("esc", 30)),
    ("credential", "password: |\n  {}\nuser: app\n", random_text("block", 20)),
    ("credential", "password = b'{}'", random_text("bytes", 20)),
    ("credential", "os.environ.setdefault('DB_PASSWORD', '{}')", "Wint" + "er2031!x"),
    ("credential", "os.getenv('API_KEY', '{}')", random_text("getenv", 32)),
    ("authorization", "Authorization: Bearer {}", random_text("bearer", 40)),
    ("authorization", "curl -H 'authorization: token {}' x", random_text("tok", 40, HEX)),
    ("authorization", "Authorization: Basic {}", base64.b64encode(b"user:Wint" + b"er2031").decode()),
    ("url-password", "postgres://app:{}@db.internal:5432/app", "s7rong" + "horse"),
    ("url-password", "redis://:{}@cache:6379/0", "s7rong" + "horse"),
    ("url-password", "git clone https://me:{}@host/x.git", "s7rong" + "horse!$"[:-1]),
)

#: Common text that must not be redacted.
CLEAN: tuple[str, ...] = (
    'password = os.environ["DB_PASSWORD"]',
    "def login(token: str, password: str | None = None) -> Token: ...",
    "secret_key=settings.SECRET_KEY, api_key=config.api_key_v2",
    'client = Client(api_key="test-key")',
    'assert check_password("password123", user.password)',
    'password = "password123"',
    "POSTGRES_PASSWORD=postgres",
    "mysqldump --password --host=db1.internal orders",
    "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:-postgres16}",
    "password: must be at least 8 characters and hold 1 digit",
    "API_KEY=your-api-key-0123456789abcdef",
    "AWS_ACCESS_KEY_ID=AKIA" + "IOSFODNN7EXAMPLE",
    'Authorization: Bearer $TOKEN and "Authorization": f"Bearer {token}"',
    "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
    'token = "getUserToken2ValueOfOAuth2Client" or secret = "sha256_with_rsa2048"',
    "commit 4c86b01d2f3a6b7c8d9e0f1a2b3c4d5e6f708192",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "max_tokens=4096 input_tokens: 1200 tokenizer=o200k_base",
    '{"next_page_token": "' + random_text("page", 40) + '"}',
    "postgres://postgres:postgres@localhost:5432/app",
    "postgres://user:password@localhost/db and redis://user:${REDIS_PASSWORD}@host",
    "ssh://git@github.com:22/a/b and http://localhost:8000/a@b",
    "task-runner-with-a-long-name disk-usage-of-the-last-thirty-days",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    'PEM = re.compile("-----BEGIN (?:RSA )?PRIVATE KEY-----")',
    "certificate: "
    + base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + hashlib.sha512(b"c").digest() * 9).decode(),
    "Authorization: Bearer authentication is required for this endpoint",
    "eyJhbGciOi.toString and eyJ.foo.bar",
    "10.0.0.1 8.8.8.8:53 2001:db8::1",
    "data:image/png;base64," + base64.b64encode(hashlib.sha512(b"x").digest() * 40).decode(),
    "APACHELICENSE AppendableCollection APEntertainment2Manager",
)
