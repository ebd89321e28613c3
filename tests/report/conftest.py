from collections.abc import Iterator
from pathlib import Path

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import write_html
from tests.helpers import star
from tests.report.browser import Browser, plan_of


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driven = Browser(tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()


@pytest.fixture(scope="session")
def village_page(tmp_path_factory: pytest.TempPathFactory, village: Instance) -> Path:
    page = tmp_path_factory.mktemp("pages") / "village.html"
    write_html(village, plan_of(village), page)
    return page


@pytest.fixture
def shown(browser: Browser, village_page: Path) -> Browser:
    browser.open(village_page)
    return browser


@pytest.fixture(scope="session")
def many_routes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of sixty routes."""
    town = star(*[10] * 60)
    plan = plan_of(town)
    assert plan.num_routes == 60
    page = tmp_path_factory.mktemp("many") / "many.html"
    write_html(town, plan, page)
    return page
