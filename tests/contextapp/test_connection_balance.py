"""The processes of the web server share the connections of active clients evenly."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from contextlib import suppress
from http.client import HTTPConnection
from itertools import count
from urllib.parse import urlsplit

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextapp.connection_balance import ACTIVE_SECONDS, Balance, new_board


class World:
    """Processes, clients that keep their connections, and a clock. Connections are assigned at random."""

    def __init__(self, processes: int, seed: int) -> None:
        self.now = 1_000.0
        board = new_board()
        self.processes = [
            Balance(board, process=number, clock=lambda: self.now) for number in range(processes)
        ]
        self.beat()
        self.random = random.Random(seed)
        self.numbers = count()
        self.clients: list[tuple[str, Balance]] = []

    def beat(self) -> None:
        for process in self.processes:
            process.beat()

    def connect(self, process: Balance | None = None) -> None:
        name = f"127.0.0.1:{next(self.numbers)}"
        self.clients.append((name, process or self.random.choice(self.processes)))

    def request(self) -> int:
        """Send a request from each client, and return the number of connections that were closed."""
        before, self.clients, closed = self.clients, [], 0
        for name, process in before:
            self.now += 0.06
            if process.closes(name):
                closed += 1
                self.connect()
            else:
                self.clients.append((name, process))
        return closed

    def spread(self) -> list[int]:
        found = Counter(id(process) for _, process in self.clients)
        return sorted(found[id(process)] for process in self.processes)


@given(processes=st.integers(2, 5), clients=st.integers(2, 24), seed=st.integers(0, 1_000))
def test_active_connections_are_spread_evenly_and_then_kept(processes: int, clients: int, seed: int) -> None:
    world = World(processes, seed)
    for _ in range(clients):
        world.connect(world.processes[0])
    world.request()
    for _ in range(400):
        world.request()
        world.beat()
    least, most = world.spread()[0], world.spread()[-1]
    assert most - least <= max(1, least / 4)
    assert sum(world.request() for _ in range(20)) == 0


def test_inactive_connections_do_not_count() -> None:
    world = World(2, seed=1)
    busy, idle = world.processes
    for _ in range(3):
        world.connect(idle)
    world.request()
    world.clients.clear()  # they stay connected, but send nothing more
    for _ in range(3):
        world.now += ACTIVE_SECONDS
        world.beat()
    for _ in range(3):
        world.connect(busy)
    closed = sum(world.request() for _ in range(5))
    assert closed
    assert world.spread() == [1, 2]


def test_a_process_that_has_ended_gets_no_connections() -> None:
    world = World(2, seed=1)
    left, _ = world.processes
    world.now += 3 * ACTIVE_SECONDS
    left.beat()
    for _ in range(4):
        world.connect(left)
    assert sum(world.request() for _ in range(20)) == 0


def servers() -> dict[int, int]:
    """Return the process of each client's connection to the web server, by the client's port."""
    found: dict[int, int] = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # other children may end meanwhile
            if "contextapp.http_server" in " ".join(process.cmdline()):
                sockets = process.net_connections("tcp")
                found |= {socket.raddr.port: process.pid for socket in sockets if socket.raddr}
    return found


def test_four_agents_of_one_process_move_to_both(served_url: str) -> None:
    address = urlsplit(served_url)  # two processes
    clients: dict[int, list[HTTPConnection]] = defaultdict(list)
    while max(map(len, clients.values()), default=0) < 4:
        client = HTTPConnection(str(address.hostname), address.port or 0)
        client.connect()
        clients[server_of(client)].append(client)
    agents = max(clients.values(), key=len)
    for _ in range(1_000):
        for agent in agents:
            agent.request("GET", "/healthz")
            assert agent.getresponse().read()
        found = servers()
        # An agent without a socket was asked to close it. Its next request opens another one.
        processes = Counter(found[port_of(agent)] for agent in agents if agent.sock is not None)
        if sorted(processes.values()) == [2, 2]:
            return
    pytest.fail(f"the processes have {processes}")


def server_of(client: HTTPConnection) -> int:
    """Return the process of a client's connection, when it has accepted it."""
    for _ in range(1_000):
        if (process := servers().get(port_of(client))) is not None:
            return process
    pytest.fail("no process of the web server has accepted the connection")


def port_of(client: HTTPConnection) -> int:
    assert client.sock is not None
    port: int = client.sock.getsockname()[1]
    return port
