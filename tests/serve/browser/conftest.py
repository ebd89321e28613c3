from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.serve.browser.page import Page
from tests.serve.running import Json, Server, town


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driven = Browser(tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page, just opened; whatever it does, it asks nobody else and has no errors."""
    opened = Page(browser, server)
    opened.open()
    yield opened
    assert opened.complaints() == []
    assert all(one.startswith(server.address) for one in opened.requests())


@pytest.fixture(scope="session")
def town_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("maps") / "village.geojson"
    file.write_bytes(town())
    return file


@pytest.fixture
def planned(page: Page, solved_job: Json) -> Page:
    """The page with a plan of the town."""
    page.open(f"#job={solved_job['id']}")
    page.wait_for_plan()
    return page
