"""What can be set of the product itself, from the environment; `docs/configuration.md` lists it all."""

from __future__ import annotations

import os


def env_flag(name: str, *, default: bool = False) -> bool:
    return os.environ.get(name, str(default)).lower() in {"1", "true", "yes", "on"}


def env_list(name: str, default: str) -> list[str]:
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


# -- Limits and budgets ---------------------------------------------------------------------------

#: Limits of one request: bytes of its body, messages of one push, bytes of one message.
CONTEXTAPP_MAX_BODY_BYTES = int(os.environ.get("CONTEXTAPP_MAX_BODY_BYTES", str(16 * 1024 * 1024)))
CONTEXTAPP_MAX_MESSAGES = int(os.environ.get("CONTEXTAPP_MAX_MESSAGES", "1000"))
CONTEXTAPP_MAX_MESSAGE_BYTES = int(os.environ.get("CONTEXTAPP_MAX_MESSAGE_BYTES", str(8 * 1024 * 1024)))
#: Bytes of one log that is imported over the API; the command line takes any.
CONTEXTAPP_MAX_IMPORT_BYTES = int(os.environ.get("CONTEXTAPP_MAX_IMPORT_BYTES", str(64 * 1024 * 1024)))
#: Requests a minute of one API key; 0: no limit. A key may have its own.
CONTEXTAPP_RATE_LIMIT = int(os.environ.get("CONTEXTAPP_RATE_LIMIT", "0"))
#: The budget of a session that names neither its own nor a model whose window is known (input tokens).
CONTEXTAPP_DEFAULT_BUDGET = int(os.environ.get("CONTEXTAPP_DEFAULT_BUDGET", "100000"))
#: Kept free of a model's window for its answer (tokens).
CONTEXTAPP_MAX_OUTPUT = int(os.environ.get("CONTEXTAPP_MAX_OUTPUT", "16000"))

# -- Periods of the beat ----------------------------------------------------------------------------

#: Seconds between two looks for compactions that were lost.
CONTEXTAPP_SWEEP_SECONDS = float(os.environ.get("CONTEXTAPP_SWEEP_SECONDS", "20"))
#: Seconds between two looks for sessions whose sparkline and health are behind.
CONTEXTAPP_PROFILE_SECONDS = float(os.environ.get("CONTEXTAPP_PROFILE_SECONDS", "15"))
#: A pending compaction that no worker took for so many seconds is sent again.
CONTEXTAPP_REDISPATCH_SECONDS = float(os.environ.get("CONTEXTAPP_REDISPATCH_SECONDS", "20"))
#: A worker that did not renew its lease for so many seconds is gone.
CONTEXTAPP_LEASE_SECONDS = float(os.environ.get("CONTEXTAPP_LEASE_SECONDS", "20"))
#: Seconds between two looks for sessions that have gone idle, and for recaps that a model may do better.
CONTEXTAPP_IDLE_CHECK_SECONDS = float(os.environ.get("CONTEXTAPP_IDLE_CHECK_SECONDS", "30"))
#: Seconds without a turn until a session rests: its facts propose themselves, a model reads what is left.
CONTEXTAPP_MEMORY_REST_SECONDS = float(os.environ.get("CONTEXTAPP_MEMORY_REST_SECONDS", "300"))
#: Seconds between two fillings of the sums that trends are read from.
CONTEXTAPP_ROLLUP_SECONDS = float(os.environ.get("CONTEXTAPP_ROLLUP_SECONDS", "60"))
#: Seconds between two looks for what compactions took away and agents needed later.
CONTEXTAPP_REFERENCE_SECONDS = float(os.environ.get("CONTEXTAPP_REFERENCE_SECONDS", "10"))

# -- Summaries by a model -----------------------------------------------------------------------

CONTEXTAPP_ANTHROPIC_API_KEY = os.environ.get("CONTEXTAPP_ANTHROPIC_API_KEY") or os.environ.get(
    "ANTHROPIC_API_KEY", ""
)
CONTEXTAPP_ANTHROPIC_BASE_URL = os.environ.get("ANTHROPIC_BASE_URL") or None
#: The model that summarises where the project names none; "" for a cheap one, "off" for none.
CONTEXTAPP_SUMMARIZER_MODEL = os.environ.get("CONTEXTAPP_SUMMARIZER_MODEL", "")
#: Seconds: one try may take, all tries of a summary may take, the first pause between two of them.
CONTEXTAPP_SUMMARIZER_TIMEOUT = float(os.environ.get("CONTEXTAPP_SUMMARIZER_TIMEOUT", "60"))
CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT = float(os.environ.get("CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT", "180"))
CONTEXTAPP_SUMMARIZER_BACKOFF = float(os.environ.get("CONTEXTAPP_SUMMARIZER_BACKOFF", "1"))
#: After failures in a row (the policy's `max_failures`), seconds for which the background stays off.
CONTEXTAPP_COOLDOWN_SECONDS = float(os.environ.get("CONTEXTAPP_COOLDOWN_SECONDS", "600"))
#: A session idle for so many seconds has lost the provider's cache: its recap may be rewritten at no cost.
CONTEXTAPP_UPGRADE_IDLE_SECONDS = float(os.environ.get("CONTEXTAPP_UPGRADE_IDLE_SECONDS", "300"))

# -- Webhooks ----------------------------------------------------------------------------------

#: Webhooks may use http and lead to private addresses: for a network in which every project is trusted.
CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = env_flag("CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE")
