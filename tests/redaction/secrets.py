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


def made(seed: str, length: int, alphabet: str = WORD) -> str:
    """Return a seeded random text in which letters and digits alternate often, as in real tokens."""
    source = random.Random(hashlib.sha256(seed.encode()).digest())
    return "".join(source.choice(alphabet) for _ in range(length))


def jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"A B"}')
    head, claims = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return f"{head}.{claims}.{made('jwt', 43)}"


def private_key_body(lines: int = 12) -> str:
    return "\n".join(made(f"pem{line}", 64) for line in range(lines)) + "\n" + made("end", 31) + "="


def private_key(kind: str = "RSA ") -> str:
    dashes = "-" * 5
    begin, end = (f"{dashes}{word} {kind}PRIVATE KEY{dashes}" for word in ("BEGIN", "END"))
    return f"{begin}\n{private_key_body()}\n{end}"


#: Kind, and a secret of this kind.
TOKENS: tuple[tuple[str, str], ...] = (
    ("aws-access-key", "AKI" + "A" + made("aws", 16, UPPER)),
    ("aws-access-key", "ASI" + "A" + made("sts", 16, UPPER)),
    ("anthropic-key", "sk-" + "ant-api03-" + made("ant", 93) + "AA"),
    ("openai-key", "sk-" + "proj-" + made("oai", 48)),
    ("openai-key", "sk-" + made("oa1", 20) + "T3Blbk" + "FJ" + made("oa2", 20)),
    ("openrouter-key", "sk-" + "or-v1-" + made("or", 64, HEX)),
    ("sk-key", "sk-" + made("sk", 40, HEX)),
    ("contextapp-key", "ctx" + "_" + made("p", 8, HEX) + "_" + made("ctx", 43)),
    ("github-token", "gh" + "p_" + made("gh", 36)),
    ("github-token", "github" + "_pat_" + made("gh1", 22) + "_" + made("gh2", 59)),
    ("gitlab-token", "glp" + "at-" + made("gl", 20)),
    ("slack-token", "xox" + "b-" + "1234567890-" + "1234567890123-" + made("slack", 24)),
    (
        "slack-token",
        "https://hooks.slack" + ".com/services/T" + made("t", 8, UPPER) + "/B1A2B3C4D/" + made("h", 24),
    ),
    ("stripe-key", "sk" + "_live_" + made("stripe", 24)),
    ("stripe-key", "rk" + "_test_" + made("stripe2", 24)),
    ("npm-token", "np" + "m_" + made("npm", 36)),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + made("pypi", 90)),
    ("sendgrid-key", "S" + "G." + made("sg1", 22) + "." + made("sg2", 43)),
    ("square-secret", "sq0" + "csp-" + made("sq", 43)),
    ("telegram-token", made("tg0", 9, "123456789") + ":" + made("tg", 35)),
    ("twilio-key", "S" + "K" + made("tw", 32, HEX)),
    ("discord-token", "M" + made("d1", 23) + "." + made("d2", 6) + "." + made("d3", 27)),
    ("mailchimp-key", made("mc", 32, HEX) + "-us" + "12"),
    ("artifactory-key", "AK" + "C" + made("af", 70)),
    ("azure-storage-key", "Account" + "Key=" + made("az", 86) + "=="),
    ("azure-client-secret", made("a1", 3) + "8Q" + "~" + made("a2", 34)),
    ("azure-sas", "si" + "g=" + made("sas", 43) + "%3D"),
    ("google-api-key", "AIz" + "a" + made("goog", 35)),
    ("google-oauth-secret", "GOC" + "SPX-" + made("gs", 28)),
    ("google-oauth-token", "ya" + "29." + made("ya", 60)),
    ("huggingface-token", "h" + "f_" + made("hf", 34)),
    ("groq-key", "gs" + "k_" + made("groq", 52)),
    ("vault-token", "hv" + "s." + made("vault", 90)),
    ("digitalocean-token", "do" + "p_v1_" + made("do", 64, HEX)),
    ("databricks-token", "dap" + "i" + made("dbx", 32, HEX)),
    ("age-key", "AGE-SECRET" + "-KEY-1" + made("age", 58, UPPER)),
    ("jwt", jwt()),
)

#: Kind, text with `{}` in place of the secret, and the secret.
IN_PLACE: tuple[tuple[str, str, str], ...] = (
    ("aws-access-key", 'aws_secret_access_key = "{}"', made("awss", 40)),
    ("credential", "aws_secret_access_key = {}", made("awss", 40)),
    ("credential", "export DB_PASSWORD={}\n", "Wint" + "er2031!x"),
    ("credential", "DB_PASSWORD='{}'", "Wint" + "er2031!x"),
    ("credential", "mysql --password={} -h db", "Wint" + "er2031!x"),
    ("credential", "deploy --api-key {} now", made("flag", 24)),
    ("credential", '{{"password": "{}"}}', "Wint" + "er2031!x"),
    ("credential", 'api_key = "{}"', made("ak", 32)),
    ("credential", "client_secret: {}", made("cs", 32, HEX)),
    ("credential", "X-Api-Key: {}\r\n", made("xak", 32, HEX)),
    ("credential", "https://host/path?access_token={}&x=1", made("at", 32)),
    ("credential", '{{\\"auth_token\\": \\"{}\\"}}', made("esc", 30)),
    ("authorization", "Authorization: Bearer {}", made("bearer", 40)),
    ("authorization", "curl -H 'authorization: token {}' x", made("tok", 40, HEX)),
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
    '{"next_page_token": "' + made("page", 40) + '"}',
    "postgres://postgres:postgres@localhost:5432/app",
    "postgres://user:password@localhost/db and redis://user:${REDIS_PASSWORD}@host",
    "ssh://git@github.com:22/a/b and http://localhost:8000/a@b",
    "task-runner-with-a-long-name disk-usage-of-the-last-thirty-days",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    'PEM = re.compile("-----BEGIN (?:RSA )?PRIVATE KEY-----")',
    "eyJhbGciOi.toString and eyJ.foo.bar",
    "10.0.0.1 8.8.8.8:53 2001:db8::1",
    "data:image/png;base64," + base64.b64encode(hashlib.sha512(b"x").digest() * 40).decode(),
    "APACHELICENSE AppendableCollection APEntertainment2Manager",
)
