"""Connections to providers for the HTTP client, directly on asyncio.

They take much less time than the client's own ones, send the head of a request together with its body, and
refuse private addresses.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.staggered import staggered_race
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import httpcore2

from sessions.services.targets import is_public

#: Shorter writes wait for the next one, or until the response is read.
_SMALL_WRITE = 16_384
#: Received bytes at which a connection stops reading until the client has taken them.
_MOST_RECEIVED = 2**18
#: Seconds after which another address of the host is tried as well (RFC 8305).
_NEXT_ADDRESS_SECONDS = 0.25


@dataclass(slots=True)
class Attempt:
    """What happens to the connection of one request. The address of `public_host` must not be private."""

    public_host: str = ""
    is_fresh: bool = False


#: The attempt of the current task.
attempt: ContextVar[Attempt] = ContextVar("attempt")


class Connection(asyncio.Protocol):
    """A connection whose received bytes wait in a buffer."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.is_ended = False
        self._error: Exception | None = None
        self._arrived = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._arrived.set()
        if len(self.received) > _MOST_RECEIVED and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._error = exc
        self.eof_received()
        self._may_write.set()

    def eof_received(self) -> None:
        self.is_ended = True
        self._arrived.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def take(self, most: int) -> bytes:
        """Return received bytes, at least one unless the provider has closed the connection.

        Raises ReadError if the connection was lost.
        """
        while not self.received and not self.is_ended:
            self._arrived.clear()
            await self._arrived.wait()
        if self._error is not None and not self.received:
            raise httpcore2.ReadError(str(self._error)) from self._error
        data = bytes(self.received[:most])
        del self.received[:most]
        if self._is_paused and not self.received:
            self._is_paused = False
            self.transport.resume_reading()
        return data

    async def drain(self) -> None:
        """Return when the connection accepts more, or is closed."""
        await self._may_write.wait()


class Stream(httpcore2.AsyncNetworkStream):
    """A connection as the HTTP client uses it.

    Writing to a connection that the provider has closed is not an error: it may have responded before.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            await self._send(b"", timeout)
        try:
            async with asyncio.timeout(timeout):
                return await self._connection.take(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if len(self._held) + len(buffer) < _SMALL_WRITE:
            self._held += buffer
        else:
            await self._send(buffer, timeout)

    async def _send(self, buffer: bytes, timeout: float | None) -> None:
        held, self._held = self._held, b""
        if self._connection.transport.is_closing():
            return
        self._connection.transport.writelines([held, buffer])
        try:
            async with asyncio.timeout(timeout):
                await self._connection.drain()
        except TimeoutError as error:
            raise httpcore2.WriteTimeout(str(error)) from error

    async def aclose(self) -> None:
        self._connection.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        if self._held:
            await self._send(b"", timeout)
        old = self._connection.transport
        try:
            async with asyncio.timeout(timeout):
                new = await asyncio.get_running_loop().start_tls(
                    old, self._connection, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            old.abort()
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            old.abort()
            raise httpcore2.ConnectError(str(error)) from error
        if new is None:
            raise httpcore2.ConnectError("The connection was closed during the TLS handshake.")
        self._connection.transport = new
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # asked while idle: the provider has closed the connection, or is about to
            return bool(self._connection.received) or self._connection.is_ended
        names = {"server_addr": "peername", "client_addr": "sockname"}
        return self._connection.transport.get_extra_info(names.get(info, info))


class Network(httpcore2.AsyncNetworkBackend):
    """Opens the connections of the HTTP client."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> Stream:
        """Connect to a host, or to a proxy. Raises ConnectError for a private address that is forbidden."""
        current = attempt.get(None) or Attempt()
        try:
            async with asyncio.timeout(timeout):
                # The host of an HTTP proxy is another one: the proxy resolves the host of the URL.
                addresses = await _public_addresses(current.public_host) if current.public_host else []
                if host == current.public_host:
                    connection = await _connect_any(addresses, port)
                else:
                    _, connection = await asyncio.get_running_loop().create_connection(
                        Connection, host, port, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS
                    )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(str(error)) from error
        current.is_fresh = True
        return Stream(connection)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _public_addresses(host: str) -> list[str]:
    """Return the addresses of a host, those of IPv4 and IPv6 alternating.

    Raises ConnectError if any of them is private, and `OSError` if the host cannot be resolved.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    families: dict[int, list[str]] = {}
    for family, _, _, _, address in found:
        families.setdefault(family, []).append(str(address[0]))
    addresses = [each for group in zip_longest(*families.values()) for each in group if each is not None]
    if not all(map(is_public, addresses)):
        raise httpcore2.ConnectError(f"{host} is not a public address")
    return addresses


async def _connect_any(addresses: Sequence[str], port: int) -> Connection:
    """Connect to one of the addresses, as `create_connection` does. Raises `OSError`.

    It is given addresses instead of their name, which may resolve to a private one by now: even a failed
    attempt would reveal whether a port in the private network is open.
    """
    connect = asyncio.get_running_loop().create_connection
    attempts = [partial(connect, Connection, address, port) for address in addresses]
    connected, _, errors = await staggered_race(attempts, _NEXT_ADDRESS_SECONDS)
    if connected is None:
        raise next(error for error in errors if error is not None)
    connection: Connection = connected[1]
    return connection
