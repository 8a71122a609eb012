"""`make run` starts, stops, recovers from a kill, and reports in one line why it cannot start."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contextapp.embedded import home as homes
from contextapp.embedded import postgres
from sessions.services.event_metrics import event_metrics
from tests.running.instance import START_SECONDS, Instance, alive, children, free_port, running

WORKER = "contextapp.worker"
WEB = "http_server web"
TOO_LONG_FOR_A_SOCKET = "long-" * 20 + "/Home"

pytestmark = pytest.mark.processes
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def api(instance: Instance, method: str, path: str, key: str, body: bytes | None = None) -> Any:
    """Return the JSON of a successful response."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{instance.port}/api/v1/{path}",
        method=method,
        data=body,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
        return json.load(answer)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / TOO_LONG_FOR_A_SOCKET
    yield home
    shutil.rmtree(homes.sockets(home))


@linux
def test_two_instances_run_side_by_side_until_they_are_stopped_or_killed(
    tmp_path, home, shared_world, subtests
):
    """One start of an instance serves for all that can be seen on it, because a start takes seconds."""
    event_metrics().compactions.labels("manual", "done")  # creates the file with the counters of this process
    counted = list(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob(f"counter_{os.getpid()}.db"))
    first, second = Instance(home, tmp_path / "out"), shared_world.instance
    with running(first):
        assert [first.status(), second.status()] == [200, 200]
        assert [file.exists() for file in counted] == [True]  # the counters of the tests remain
        with subtests.test("files, processes and ports"):
            check_what_runs(first)
        with subtests.test("what is taken"):
            assert_exits_with(Instance(first.home, tmp_path / "c.out"), "Another instance is running in")
            third = Instance(tmp_path / "d", tmp_path / "d.out", port=first.port)
            assert_exits_with(third, f"Port {first.port} of 127.0.0.1 cannot be used: address already in use")
        assert "Traceback" not in first.printed
        with subtests.test("a kill"):
            check_kill(first, tmp_path / "again.out")
    assert second.status() == 200


def check_what_runs(instance: Instance) -> None:
    for name in ("api-key", "admin-password", "secret-key"):
        assert stat.S_IMODE((instance.home / name).stat().st_mode) == 0o600
        assert str(instance.home / "api-key") in instance.printed
    assert [niceness(instance, name) for name in (WEB, WORKER)] == [0, 10]
    if Path("/proc/self/autogroup").exists():
        assert [session_niceness(instance, name) for name in (WEB, WORKER)] == [0, 10]
    serving = pids(instance, WEB)[1:]
    assert len(serving) == 2
    assert all(memory(pid)["Private_Dirty"] * 2 < memory(pid)["Rss"] for pid in serving)  # it is shared
    commands = "\n".join(children(instance.process.pid).values())
    assert all(part in commands for part in ("postgres", "valkey-server", WEB, "http_server gateway", WORKER))
    assert f"http://127.0.0.1:{instance.gateway_port}/gateway/" in instance.printed


def check_kill(instance: Instance, output: Path) -> None:
    """Kill an instance. Another one that starts with its data folder has its data, and stops cleanly.

    It is stopped right away, while its worker starts.
    """
    key = (instance.home / "api-key").read_text().strip()
    kept = api(instance, "POST", "sessions/", key, b'{"id": "kept"}')["id"]
    below = set(children(instance.process.pid))
    instance.kill_group()
    again = Instance(instance.home, output)
    with running(again):
        assert again.status() == 200
        assert [session["id"] for session in api(again, "GET", "sessions/", key)["data"]] == [kept]
        assert (instance.home / "api-key").read_text().strip() == key
        started = set(children(again.process.pid))
        assert pids(again, WORKER)
        assert again.stop(signal.SIGINT) == 0
        assert alive(started) == set()
    assert eventually(lambda: not alive(below) and not using(instance.home))
    assert "database system is shut down" in (instance.home / "logs" / "postgres.log").read_text()
    assert "Traceback" not in again.printed


def pids(instance: Instance, command: str) -> list[int]:
    return [pid for pid, line in children(instance.process.pid).items() if command in line]


def memory(pid: int) -> dict[str, int]:
    """Return the figures of a process's memory, in kB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name.rstrip(":"): int(value) for name, value, *_ in map(str.split, lines)}


def niceness(instance: Instance, command: str) -> int:
    """Return the niceness of the processes relative to the instance."""
    [found] = {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids(instance, command)}
    return found - os.getpriority(os.PRIO_PROCESS, instance.process.pid)


def session_niceness(instance: Instance, command: str) -> int:
    """Return the niceness of the processes' autogroup."""
    [found] = {Path(f"/proc/{pid}/autogroup").read_text().split()[-1] for pid in pids(instance, command)}
    return int(found)


def using(home: Path) -> list[str]:
    """Return the command lines of all processes of an instance, including orphans."""
    variable = f"CONTEXTAPP_HOME={home}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and variable in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--prot=8001", 2)])
def test_an_argument_starts_no_server(argument, code):
    command = [sys.executable, "-m", "contextapp", argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    assert done.returncode == code
    assert "usage: python -m contextapp" in done.stdout + done.stderr


def test_it_reports_an_unusable_data_folder(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert_exits_with(
        Instance(tmp_path / "file" / "home", tmp_path / "out"), "cannot be used: Not a directory"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_it_reports_a_read_only_data_folder(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    assert_exits_with(Instance(tmp_path / "closed", tmp_path / "out"), "cannot be used: Permission denied")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CONTEXTAPP_PORT", "http", "CONTEXTAPP_PORT is 'http': expected a whole number from 1 to 65535"),
        ("CONTEXTAPP_HOST", "host.invalid", "Set CONTEXTAPP_HOST to an address of this machine"),
        (
            "CONTEXTAPP_WORKER_NICE",
            "-5",
            "expected a whole number from 0 to 19",
        ),
    ],
)
def test_it_reports_an_invalid_setting(tmp_path, name, value, message):
    assert_exits_with(Instance(tmp_path / "home", tmp_path / "out", **{name: value}), message)


def test_the_gateway_does_not_share_the_port_of_the_web_server(tmp_path):
    port = str(free_port())
    urls = {"CONTEXTAPP_PORT": port, "CONTEXTAPP_GATEWAY_PORT": port}
    instance = Instance(tmp_path / "home", tmp_path / "out", **urls)
    assert_exits_with(instance, "CONTEXTAPP_GATEWAY_PORT must differ from CONTEXTAPP_PORT")


def test_it_reports_an_unreachable_database(tmp_path):
    url = f"postgresql://somebody:hidden@127.0.0.1:{free_port()}/nowhere"
    instance = Instance(tmp_path / "home", tmp_path / "out", DATABASE_URL=url)
    assert_exits_with(instance, "The database nowhere on 127.0.0.1 cannot be reached")
    assert "hidden" not in instance.printed
    assert not (tmp_path / "home" / "postgres").exists()


def test_it_reports_an_unreachable_broker(tmp_path, servers, settings):
    url = f"redis://:hidden@127.0.0.1:{free_port()}/0"
    database = os.environ.get("DATABASE_URL") or homes.database_url(settings.HOME)
    instance = Instance(tmp_path / "home", tmp_path / "out", DATABASE_URL=database, CELERY_BROKER_URL=url)
    assert_exits_with(instance, "The broker on 127.0.0.1 cannot be reached")
    assert "hidden" not in instance.printed


def test_the_embedded_postgres_accepts_the_connections_of_all_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTAPP_WEB_WORKERS", "16")
    monkeypatch.setenv("CONTEXTAPP_WORKERS", "16")
    options = dict(part.split("=", 1) for part in postgres.program(tmp_path).command if "=" in part)
    assert int(options["max_connections"]) > 17 * (8 + 4) + 16 * 6


def test_the_database_url_follows_from_the_data_folder():
    home = Path("/data/With Capitals")
    assert homes.database_url(home) == (
        "postgresql://contextapp@/contextapp?host=/data/With%20Capitals/run/postgres&port=5432"
    )


def test_an_existing_data_folder_becomes_private(tmp_path):
    tmp_path.chmod(0o755)
    homes.prepare(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_removed_short_folder_is_created_again(tmp_path):
    home = tmp_path / ("long-" * 20)
    home.mkdir()
    homes.make_sockets(home)
    first = homes.sockets(home)
    first.rmdir()
    homes.make_sockets(home)
    second = homes.sockets(home)
    assert second.is_dir()
    assert len(os.fsencode(second)) < 60
    second.rmdir()


def assert_exits_with(instance: Instance, reason: str) -> None:
    """Assert that the instance exits with an error, and prints only that it starts, and the reason."""
    assert instance.wait() == 1
    [line] = (line for line in instance.printed.splitlines() if not line.startswith("contextapp: starting; "))
    assert line.startswith("contextapp: ")
    assert reason in line


def eventually(condition: Callable[[], object]) -> object:
    """Return the result of the condition once it is true, or the last one after a generous time-out."""
    deadline = time.monotonic() + START_SECONDS
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_the_launcher_exits_if_its_parent_has_ended():
    launcher = Path(homes.__file__).with_name("launch.py")
    command = [sys.executable, str(launcher), "--parent", "1", "--signal", "SIGTERM", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, "The parent has ended.")
