"""The credentials of a request: the contextapp key, and the provider's credential, which passes through.

The contextapp key is in the URL, in `X-Contextapp-Key`, or in place of the provider's key. In the last case
the gateway inserts the provider key of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from accounts.keys import MARK

_MARK = f"{MARK}_".encode()

#: Headers in which clients send the provider's credential.
_PROVIDER_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")

#: The parameter of the URL in which clients of Google's APIs send it.
_PARAMETER = b"key="


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The credentials of a request.

    `replaced` are headers with our key in place of the provider's. `query` is the URL's query without it, and
    `is_in_query` is set if it was there.
    """

    key: str
    query: bytes = b""
    replaced: tuple[bytes, ...] = ()
    is_in_query: bool = False
    is_subscription: bool = False

    @property
    def needs_provider_key(self) -> bool:
        return bool(self.replaced) or self.is_in_query


def credentials_of(headers: Sequence[tuple[bytes, bytes]], *, url_key: str, query: bytes) -> Credentials:
    """Return the credentials of a request; `key` is "" if it has no contextapp key."""
    own, replaced, is_subscription = url_key, [], False
    kept, is_in_query = list[bytes](), False
    for parameter in query.split(b"&"):
        plain = unquote_to_bytes(parameter)  # clients may encode any character
        if plain.startswith(_PARAMETER + _MARK):
            own, is_in_query = own or plain.removeprefix(_PARAMETER).decode("latin-1"), True
        else:
            kept.append(parameter)
    for name, value in headers:
        name = name.lower()
        if name == b"x-contextapp-key":
            own = own or value.strip().decode("latin-1")
        elif name in _PROVIDER_HEADERS:
            secret = value.strip().removeprefix(b"Bearer ").removeprefix(b"bearer ").strip()
            if secret.startswith(_MARK):
                replaced.append(name)
                own = own or secret.decode("latin-1")
            is_subscription = is_subscription or secret.startswith(b"sk-ant-oat")
    return Credentials(
        key=own,
        query=b"&".join(kept),
        replaced=tuple(replaced),
        is_in_query=is_in_query,
        is_subscription=is_subscription,
    )
