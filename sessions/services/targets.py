"""URLs that users choose: the server sends requests to them, but never into its own network."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import SplitResult, urlsplit

#: Seconds for the DNS query of a host.
DNS_TIMEOUT = 5.0

#: All public IPv6 addresses (RFC 4291).
_GLOBAL_UNICAST = IPv6Network("2000::/3")

#: Networks that Python considers public, but that are not: IPv6 addresses that contain an IPv4 address, which
#: may be private (RFC 3056, RFC 4380), documentation (RFC 9637), and IPv4 addresses for protocols (RFC 6890),
#: at which a cloud serves credentials, and for relays (RFC 7526).
_REFUSED = tuple(map(ip_network, ("2002::/16", "2001::/32", "3fff::/20", "192.0.0.0/24", "192.88.99.0/24")))


class ForbiddenAddress(ValueError):
    """The URL is invalid, cannot be resolved, or points to a private address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked URL and its IP address.

    The connection uses this address, so a host name that later resolves to another one cannot evade the
    check.
    """

    url: SplitResult
    address: str

    @property
    def port(self) -> int:
        return self.url.port or (443 if self.url.scheme == "https" else 80)


def url_check(url: str, *, allow_private: bool) -> SplitResult:
    """Check and split a URL that a user chose, without a DNS query. Raises `ForbiddenAddress`.

    `allow_private` permits http and private addresses.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ForbiddenAddress("this is not a URL") from None
    schemes = {"https", "http"} if allow_private else {"https"}
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        raise ForbiddenAddress("the URL must begin with https:// and name a host")
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.username is not None or parts.fragment or not is_plain:
        raise ForbiddenAddress("the URL must be ASCII, without spaces, a user name or fragment")
    if not allow_private:
        _refuse_private(parts.hostname, _resolved(parts.hostname, socket.AI_NUMERICHOST))
    return parts


def target_of(url: str, *, allow_private: bool) -> Target:
    """Resolve the URL's host.

    Raises `ForbiddenAddress` if any of its addresses is not public, TimeoutError if the DNS does not respond.
    """
    parts = url_check(url, allow_private=allow_private)
    assert parts.hostname is not None
    addresses = _resolved_in_time(parts.hostname)
    if not addresses:
        raise ForbiddenAddress(f"the host {parts.hostname} cannot be resolved")
    if not allow_private:
        _refuse_private(parts.hostname, addresses)
    return Target(url=parts, address=addresses[0])


def _resolved(host: str, flags: int = 0) -> list[str]:
    """Return the addresses of a host, none if it is unknown. `AI_NUMERICHOST` prevents DNS queries."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def _resolved_in_time(host: str) -> list[str]:
    """Return the addresses of a host. Raises TimeoutError after `DNS_TIMEOUT` seconds.

    The resolver of the system has no deadline, so it runs in a thread, which ends later.
    """
    found: SimpleQueue[list[str]] = SimpleQueue()
    Thread(target=lambda: found.put(_resolved(host)), name="dns", daemon=True).start()
    try:
        return found.get(timeout=DNS_TIMEOUT)
    except Empty:
        raise TimeoutError(f"{host} was not resolved within {DNS_TIMEOUT:g} s") from None


def _refuse_private(host: str, addresses: Sequence[str]) -> None:
    if not all(map(is_public, addresses)):
        raise ForbiddenAddress(f"the host {host} is not a public address")


def is_public(text: str) -> bool:
    """Return whether an IP address is reachable from the internet, and not part of a private network."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    is_refused = any(address in network for network in _REFUSED)
    return address.is_global and not address.is_multicast and not is_refused
