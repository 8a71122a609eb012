"""Connections to providers, over TLS and through proxies, and what happens when they end."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway import upstream
from gateway.network import Network
from tests.asynchronous import run

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "provider.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@asynccontextmanager
async def serving(handler: Handler, certificate: Path | None = None) -> AsyncIterator[int]:
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to each request with its body."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be an HTTP proxy: connect to where the client asks for, and pass everything on."""
    target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    host, _, port = target.rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.close()

    await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer), return_exceptions=True)


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def pool(**options: object) -> httpcore2.AsyncConnectionPool:
    return httpcore2.AsyncConnectionPool(network_backend=Network(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_bodies_of_any_size_arrive_whole_over_tls(certificate: Path, size: int) -> None:
    async def work() -> None:
        body = bytes(number % 251 for number in range(1_000)) * (size // 1_000) or b"x" * size
        async with (
            serving(echo, certificate) as port,
            pool(ssl_context=trusting(certificate)) as http,
        ):
            for _ in range(3):
                response = await http.request("POST", f"https://127.0.0.1:{port}/", content=body)
                assert response.content == body
            assert len(http.connections) == 1

    run(work())


def test_a_certificate_of_another_authority_is_refused(certificate: Path) -> None:
    async def work() -> None:
        async with serving(echo, certificate) as port, pool() as http:
            with pytest.raises(httpcore2.ConnectError):
                await http.request("POST", f"https://127.0.0.1:{port}/", content=b"secret")

    run(work())


def test_a_proxy_passes_tls_on(certificate: Path) -> None:
    async def work() -> None:
        async with (
            serving(echo, certificate) as port,
            serving(tunnel) as proxy,
            httpcore2.AsyncHTTPProxy(
                f"http://127.0.0.1:{proxy}", ssl_context=trusting(certificate), network_backend=Network()
            ) as http,
        ):
            response = await http.request("POST", f"https://127.0.0.1:{port}/", content=b"hello")
            assert response.content == b"hello"

    run(work())


def test_a_response_that_is_reset_is_not_taken_for_complete() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await writer.drain()
        await reader.read(1)
        plain: socket.socket = writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def work() -> None:
        async with (
            serving(reset) as port,
            pool() as http,
            http.stream("POST", f"http://127.0.0.1:{port}/", content=b"x") as response,
        ):
            with pytest.raises(httpcore2.ReadError):
                async for _ in response.aiter_stream():
                    pass

    run(work())


def test_a_connection_that_the_provider_has_closed_is_not_used_again() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()
        closed.set()

    async def work() -> None:
        async with serving(once) as port, pool() as http:
            for _ in range(3):
                closed.clear()
                response = await http.request("GET", f"http://127.0.0.1:{port}/")
                assert response.content == b"ok"
                await closed.wait()
                while http.connections and not http.connections[0].has_expired():
                    await asyncio.sleep(0)

    closed = asyncio.Event()
    run(work())


@pytest.mark.parametrize(("within", "requests"), [(60.0, 3), (0.0, 2)], ids=["at once", "later"])
def test_a_request_is_sent_again_only_if_the_provider_had_closed_the_connection(
    within: float, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is reset later may have been used for an answer, which costs money."""
    received = 0

    async def second_fails(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        while await reader.readuntil(b"\r\n\r\n"):
            received += 1
            if received == 2:
                writer.transport.abort()
                return
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def work() -> None:
        async with serving(second_fails) as port, upstream.Client() as http:
            url = httpx2.URL(f"http://127.0.0.1:{port}/")
            first = await upstream.send(http, "GET", url, (), b"")
            assert await first.aread() == b"ok"
            if requests == 2:
                with pytest.raises(httpx2.TransportError):
                    await upstream.send(http, "GET", url, (), b"")
            else:
                assert (await upstream.send(http, "GET", url, (), b"")).status_code == 200

    monkeypatch.setattr(upstream, "CLOSED_WITHIN", within)
    run(work())
    assert received == requests


def test_a_slow_reader_holds_the_provider_back() -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % 2**28)
        while sent < 2**28:
            writer.write(b"x" * 2**18)
            sent += 2**18
            await writer.drain()

    async def work() -> None:
        async with (
            serving(endless) as port,
            pool() as http,
            http.stream("GET", f"http://127.0.0.1:{port}/") as response,
        ):
            received = 0
            async for part in response.aiter_stream():
                received += len(part)
                if received > 2**20:
                    break
            before = -1
            while before != sent:  # until the provider cannot send more
                before = sent
                for _ in range(1_000):
                    await asyncio.sleep(0)
            assert sent - received < 2**26

    run(work())
