"""The deployment files are valid and consistent."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextapp.embedded.programs import Program
from contextapp.embedded.servers import gateway, web, worker

ROOT = Path(__file__).resolve().parents[2]
ROLES = ("web", "gateway", "worker", "beat", "migrate")
GIVEN = """CONTEXTAPP_SECRET_KEY=k
POSTGRES_PASSWORD=p
CONTEXTAPP_DOMAIN=ctx.example.com
RABBITMQ_PASSWORD=r
"""


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return read


def compose_command() -> list[str] | None:
    """Return the command of Docker Compose: the plugin of docker, or else the separate program."""
    if shutil.which("docker"):
        found = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if found.returncode == 0:
            return ["docker", "compose"]
    if shutil.which("docker-compose"):
        version = subprocess.run(["docker-compose", "version", "--short"], capture_output=True, check=False)
        if not version.stdout.startswith(b"1."):  # version 1 does not support nested variables
            return ["docker-compose"]
    return None


@pytest.mark.processes
@pytest.mark.parametrize("more", [(), ("docker/rabbitmq.yml",)])
def test_compose_accepts_the_files(tmp_path: Path, more: tuple[str, ...]) -> None:
    command = compose_command()
    if command is None:
        pytest.skip("Docker Compose 2 is not installed")
    for name in ("docker-compose.yml", *more):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".env").write_text(GIVEN)
    files = [part for name in ("docker-compose.yml", *more) for part in ("-f", name)]
    done = subprocess.run(
        [*command, *files, "config"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    merged = yaml.safe_load(done.stdout)["services"]
    scheme = "amqp" if more else "redis"
    assert all(merged[role]["environment"]["CELERY_BROKER_URL"].startswith(scheme) for role in ROLES)
    assert merged["web"]["environment"]["CONTEXTAPP_PUBLIC_URL"] == "https://ctx.example.com"


def test_every_role_uses_the_other_broker() -> None:
    merged = yaml.safe_load((ROOT / "docker" / "rabbitmq.yml").read_text())["services"]
    brokers = {role: merged[role]["environment"]["CELERY_BROKER_URL"] for role in ROLES}
    assert all(url.startswith("amqp://") for url in brokers.values())


def test_one_image_has_all_roles(services: dict[str, Any]) -> None:
    assert len({services[role]["image"] for role in ROLES}) == 1
    roles = (ROOT / "docker" / "role").read_text()
    known = set(re.findall(r"^(\w+)\) (?:web|gateway|worker|beat|exec|healthy)", roles, re.MULTILINE))
    for role in ROLES:
        assert services[role]["command"] == [role]
        assert role in known


@pytest.mark.processes
@pytest.mark.parametrize(
    ("role", "program"),
    [("web", web("", 0)), ("gateway", gateway("", 0)), ("worker", worker(Path()))],
    ids=("web", "gateway", "worker"),
)
def test_a_container_returns_memory_and_stops_like_a_local_instance(
    role: str, program: Program, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nenv\n")
    python.chmod(0o755)
    done = subprocess.run(
        [ROOT / "docker" / "role", role],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = {n: v for n, v in program.environment.items() if n.startswith("MALLOC_")}
    assert expected.items() <= dict(line.split("=", 1) for line in done.stdout.splitlines()).items()


@pytest.mark.processes
@pytest.mark.parametrize("role", ["web", "gateway"])
def test_only_a_container_can_be_reached_from_other_machines(
    role: str, services: dict[str, Any], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    host = {"CONTEXTAPP_HOST": services[role]["environment"]["CONTEXTAPP_HOST"]}
    for environment, expected in ({}, "127.0.0.1"), (host, "0.0.0.0"):
        done = subprocess.run(
            [ROOT / "docker" / "role", role],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"--host {expected} " in done.stdout


def test_every_lasting_service_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"migrate"}


def test_services_start_after_the_migration(services: dict[str, Any]) -> None:
    for role in ("web", "gateway", "worker", "beat"):
        assert services[role]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_links_lead_to_the_domain_unless_another_url_is_set(services: dict[str, Any]) -> None:
    for name in ("CONTEXTAPP_PUBLIC_URL", "CONTEXTAPP_GATEWAY_PUBLIC_URL"):
        for role in ("web", "worker"):
            assert services[role]["environment"][name] == f"${{{name}:-https://${{CONTEXTAPP_DOMAIN}}}}"


def test_the_example_contains_every_required_variable() -> None:
    files = [ROOT / "docker-compose.yml", *(ROOT / "docker").glob("*.yml")]
    needed = {name for file in files for name in re.findall(r"\$\{(\w+):\?", file.read_text())}
    offered = set(re.findall(r"^#?(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert needed <= offered


def test_the_example_contains_no_secret() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert all(line.endswith("=") for line in lines if re.match(r"#?\w*(KEY|PASSWORD)\w*=", line))


def test_the_image_contains_only_what_is_allowed() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in allowed)
    assert not allowed & {".env", ".git", "tests", ".contextapp"}


@pytest.mark.processes
def test_other_users_cannot_write_to_the_file_of_the_scheduler(tmp_path: Path) -> None:
    """Only a container, whose data folder cannot be written to, has it in /tmp."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    home = tmp_path / "home"
    for folder, expected in (home, home), (Path("/proc/none"), Path("/tmp")):
        done = subprocess.run(
            [ROOT / "docker" / "role", "beat"],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CONTEXTAPP_HOME": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"--schedule {expected}/beat-schedule\n" in done.stdout
