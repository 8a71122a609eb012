"""Secrets in the input and output of tools: kind, text with `{}` in place of the secret, and the secret."""

from __future__ import annotations

import base64

from tests.redaction.secrets import HEX, password, random_text

_ENCODED = base64.b64encode(b"Rz8vKq2LmP4x").decode()
_TYPED = "S3cure!" + "Winter9"
_STORAGE_KEY = random_text("az88", 86) + "=="
_MANIFEST = '{{"apiVersion": "v1", "data": {{"DB": "{}"}}, "kind": "Secret", "metadata": {{"name": "x"}}}}'

TOOL_PLACES: tuple[tuple[str, str, str], ...] = (
    ("Kubernetes secret in JSON", _MANIFEST, _ENCODED),
    (
        "Kubernetes secrets in a list",
        '{{\n  "items": [\n    {{"kind": "ConfigMap"}},\n    ' + _MANIFEST + '\n  ],\n  "kind": "List"\n}}',
        _ENCODED,
    ),
    ("Kubernetes annotation", "last-applied-configuration: |\n  " + _MANIFEST, _ENCODED),
    (
        "Kubernetes secret, kind first",
        '{{"kind": "Secret", "stringData": {{"a.b": "{}"}}}}',
        password("kj", 20),
    ),
    ("kubectl create secret", "kubectl create secret generic db --from-literal=password={}", password("kl")),
    ("IDENTIFIED BY", "CREATE USER 'app'@'%' IDENTIFIED BY '{}';", _TYPED),
    ("IDENTIFIED WITH", "create user app identified with caching_sha2_password by '{}'", _TYPED),
    ("ALTER ROLE", "ALTER ROLE app\n  WITH LOGIN ENCRYPTED PASSWORD '{}';", _TYPED),
    ("ALTER USER in psql", "psql -c \"ALTER USER postgres PASSWORD '{}'\"", _TYPED),
    ("CREATE LOGIN", "CREATE LOGIN app WITH PASSWORD = N'{}', CHECK_POLICY = ON;", _TYPED),
    ("SET PASSWORD", "SET PASSWORD FOR 'app'@'%' = '{}';", _TYPED),
    ("SET PASSWORD with a function", "SET PASSWORD FOR 'app'@'%' = PASSWORD('{}');", _TYPED),
    ("CREATE USER MAPPING", "CREATE USER MAPPING FOR u SERVER s OPTIONS (user 'u', password '{}')", _TYPED),
    ("Git remote", "origin\thttps://{}@dev.azure.com/acme/_git/app (fetch)", random_text("remote", 52)),
    ("Git remote, basic", "https://{}:x-oauth-basic@github.com/acme/app", random_text("basic", 40, HEX)),
    ("Markdown", "- **Username:** admin\n- **Password:** `{}`\n", "Tr0ub4dor" + "&3x"),
    ("Markdown, colon outside", "**API key**: {}\n", random_text("mdkey", 32)),
    ("Markdown table", "| Password | {} |\n", "Tr0ub4dor" + "&3x"),
    ("HTML", "<b>Password:</b> {}<br>", "Tr0ub4dor" + "&3x"),
    ("Secrets Manager", '{{\n    "Name": "db",\n    "SecretString": "{}"\n}}', _TYPED),
    ("Secrets Manager in an object", '{{"SecretString": "{}"}}', random_text("ss", 24)),
    ("Secrets Manager command", "aws secretsmanager create-secret --secret-string {}", random_text("sc", 24)),
    ("Parameter Store", '{{"Type": "SecureString", "Value": "{}", "Version": 1}}', _TYPED),
    ("Parameter Store command", "aws ssm put-parameter --value '{}' --type SecureString", _TYPED),
    ("aws configure", "aws configure set aws_secret_access_key {}", random_text("conf", 40)),
    ("Terraform output", '{{"pw": {{"sensitive": true, "type": "string", "value": "{}"}}}}', _TYPED),
    ("Terraform secret_string", '  secret_string = "{}"', random_text("tfs", 24)),
    ("Key Vault", '{{"id": "https://v.vault.azure.net/secrets/db/1", "kid": null, "value": "{}"}}', _TYPED),
    ("Azure storage keys", '[{{"keyName": "key1", "permissions": "FULL", "value": "{}"}}]', _STORAGE_KEY),
    ("Logic Apps", "https://a.logic.azure.com:443/workflows/1?sv=1.0&sig={}", random_text("la", 43)),
    ("Ocp-Apim-Subscription-Key", "Ocp-Apim-Subscription-Key: {}", random_text("ocp", 32, HEX)),
    ("x-functions-key", 'headers = {{"x-functions-key": "{}"}}', random_text("fun", 54)),
    ("X-JFrog-Art-Api", "curl -H 'X-JFrog-Art-Api: {}' https://acme.io", random_text("jf", 73)),
    ("curl with a token as the user", "curl -u {}: https://acme.io", random_text("cuser", 40)),
    ("curl -su", "curl -sSLu deploy:{} https://acme.io", password("csu")),
    ("twine", "twine upload -u ci -p {} dist/*", password("twine")),
    ("npm config", "npm config set //npm.acme.io/:_authToken {}", random_text("npmc", 36)),
    ("SSHPASS", "SSHPASS={} sshpass -e ssh host", password("sshenv")),
    ("Telegram URL", "https://api.telegram.org/bot123456789:{}/getMe", "AA" + random_text("tgu", 33)),
    ("Laravel", "APP_KEY=base64:{}", random_text("lar", 43) + "="),
)
