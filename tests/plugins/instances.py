"""A whole instance, which tests share because its start takes longer than most of them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.background.world import OTHER_BROKER, SETTINGS, World
from tests.gateway.double import Provider
from tests.provider.server import FakeProvider
from tests.running.instance import Instance, running

#: Bytes of the file system of the instance's data folder.
DISK = 512 << 20

MNT_DETACH = 2  # from <sys/mount.h>


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A folder with a small file system, or None if this user may not mount one."""
    folder = tmp_path_factory.mktemp("disk")
    options = ["-o", f"size={DISK},mode=0711", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", "-t", "tmpfs", *options], check=False, capture_output=True)
    yield folder if mounted.returncode == 0 else None
    if mounted.returncode == 0:
        # Not with a process: the last test that ends the session may not be one that starts processes.
        assert ctypes.CDLL(None).umount2(os.fsencode(folder), MNT_DETACH) == 0


@pytest.fixture(scope="session")
def upstream() -> Iterator[Provider]:
    """The provider to which the instance's gateway forwards Anthropic's requests."""
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="session")
def shared_world(
    disk: Path | None, upstream: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """An instance with intervals of seconds. Tests may kill its parts."""
    if sys.platform != "linux":
        pytest.skip("finds the processes in /proc")
    folder = tmp_path_factory.mktemp("instance")
    with FakeProvider() as provider:
        broker = {"CELERY_BROKER_URL": OTHER_BROKER} if OTHER_BROKER else {}
        urls = {"ANTHROPIC_BASE_URL": provider.url, "CONTEXTAPP_GATEWAY_ANTHROPIC_URL": upstream.url}
        home = (disk or folder) / "home"
        with running(Instance(home, folder / "out", **SETTINGS, **broker, **urls)) as instance:
            yield World(instance, provider)
