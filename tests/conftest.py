"""Fixtures that every test may ask for.

Postgres and Valkey start at the first test that asks for the database, in a temporary folder, one pair
for each process of pytest-xdist. DATABASE_URL and CELERY_BROKER_URL put others in their place.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck
from hypothesis import settings as examples
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django import DjangoDbBlocker

from accounts.models import Membership, Project, Role
from accounts.services import api_key_create, project_create
from contextapp.embedded import home as homes
from contextapp.embedded import postgres, valkey
from contextapp.embedded.supervisor import Supervisor
from tests import serving
from tests.browsing import hear_complaints

_REPOSITORY = Path(__file__).resolve().parent.parent

# How long an example takes says how busy the machine is.
examples.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
examples.load_profile("tests")


# Where most of a test is waiting for processes.
_WAITING = {"background", "running"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits comes first: the rest fills the time, and the servers that these tests share are started in
    one process and not in each that would take some of them over at the end."""
    items.sort(key=lambda item: item.path.parent.name not in _WAITING)


@pytest.fixture(scope="session")
def trajectories() -> Path:
    """The folder of real transcripts; they are not part of the repository."""
    default = _REPOSITORY.parent / "shared" / "data" / "trajectories"
    folder = Path(os.environ.get("CONTEXTAPP_TRAJECTORIES", default))
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}; set CONTEXTAPP_TRAJECTORIES")
    return folder


# -- Servers ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """A Postgres that need not survive a crash, and a Valkey."""
    home = settings.HOME
    homes.prepare(home)
    programs = []
    if not os.environ.get("DATABASE_URL"):
        postgres.ensure_cluster(home, fast=True)
        programs.append(postgres.program(home, fast=True))
    if not os.environ.get("CELERY_BROKER_URL"):
        programs.append(valkey.program(home))
    with Supervisor() as supervisor:
        supervisor.start(*programs)
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """pytest-django asks for this before it makes the test database."""


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """The database of a server that goes away with the tests needs no dropping."""
    return django_db_keepdb or not os.environ.get("DATABASE_URL")


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database for fixtures of a module none of whose tests is transactional: each test is rolled back to
    what these fixtures made, and that goes with the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="session")
def _web_server(django_db_setup: None) -> Iterator[str]:
    with serving.web_server() as url:
        yield url


@pytest.fixture
def served_url(_web_server: str, transactional_db: None) -> str:
    """The address of the product under its real web server, on the test database: `http://127.0.0.1:…`."""
    return _web_server


# -- Browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, driven by Playwright."""
    executable = serving.find_chromium()
    if executable is None:
        how = "no Chromium or Chrome is installed; `make test` installs one where it may"
        if os.environ.get("CI") == "true":
            pytest.fail(how)
        pytest.skip(how)
    with serving.chromium(executable) as browser:
        yield browser


@pytest.fixture(scope="session")
def _window(browser: Browser, _web_server: str) -> Iterator[BrowserContext]:
    """One for all tests, with a page that stays open: to make a window costs more than most of them."""
    context = browser.new_context(base_url=_web_server, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)  # a busy machine is no failure
    expect.set_options(timeout=30_000)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser of `page` complained about. A test that expects a complaint takes it out."""
    return []


@pytest.fixture
def page(_window: BrowserContext, served_url: str, complaints: list[str]) -> Iterator[Page]:
    """A new page (1440 × 900) with no cookies; relative addresses lead to `served_url`. No test may leave
    complaints of the browser behind."""
    page = _window.new_page()
    hear_complaints(page, complaints)
    yield page
    page.close()
    _window.clear_cookies()
    _window.clear_permissions()
    assert complaints == []


@pytest.fixture
def page_as(page: Page, served_url: str, logged_in: Callable[[User], Client]) -> Callable[[User], Page]:
    """The page of a user who is logged in: `page_as(owner).goto("/")`."""

    def page_of(user: User) -> Page:
        cookie = logged_in(user).cookies[settings.SESSION_COOKIE_NAME]
        page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": served_url}])
        return page

    return page_of


# -- People -------------------------------------------------------------------------------------


@pytest.fixture
def project(db: None) -> Project:
    return project_create(name="Alpha", slug="alpha")


@pytest.fixture
def other_project(db: None) -> Project:
    return project_create(name="Beta", slug="beta")


def _member(project: Project, role: Role, name: str) -> User:
    user = User.objects.create_user(name, password="correct horse battery")
    Membership.objects.create(project=project, user=user, role=role)
    return user


@pytest.fixture
def owner(project: Project) -> User:
    return _member(project, Role.OWNER, "olga")


@pytest.fixture
def member(project: Project) -> User:
    return _member(project, Role.MEMBER, "marc")


@pytest.fixture
def viewer(project: Project) -> User:
    return _member(project, Role.VIEWER, "vera")


@pytest.fixture
def stranger(other_project: Project) -> User:
    """The owner of another project, who must see nothing of this one."""
    return _member(other_project, Role.OWNER, "sten")


@pytest.fixture
def logged_in() -> Callable[[User], Client]:
    """A client of Django's for a user: `logged_in(owner).get("/")`."""

    def client_of(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return client_of


@pytest.fixture
def owner_client(owner: User, logged_in: Callable[[User], Client]) -> Client:
    return logged_in(owner)


@pytest.fixture
def member_client(member: User, logged_in: Callable[[User], Client]) -> Client:
    return logged_in(member)


@pytest.fixture
def viewer_client(viewer: User, logged_in: Callable[[User], Client]) -> Client:
    return logged_in(viewer)


@pytest.fixture
def stranger_client(stranger: User, logged_in: Callable[[User], Client]) -> Client:
    return logged_in(stranger)


@pytest.fixture
def api_key(project: Project) -> str:
    """The text of a key of `project` that may push and read."""
    return api_key_create(project=project, name="tests")[1]


@pytest.fixture
def stranger_api_key(other_project: Project) -> str:
    return api_key_create(project=other_project, name="tests")[1]
