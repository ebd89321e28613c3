import os
import signal

import pytest
from hypothesis import settings

from arcfleet import Instance, Solution, Stop, read
from tests.helpers import SMALL, VILLAGE, solved

# How long an example takes says more of the machine than of the code. CI tries the same
# examples each time, so that a change fails for its own faults only; everybody else's runs
# look for new ones.
same = os.environ.get("ARCFLEET_SAME_EXAMPLES") == "1"
settings.register_profile("arcfleet", deadline=None, derandomize=same)
settings.load_profile("arcfleet")

# The models are tiny, and tests run side by side: more threads of numpy and torch would
# only take each other's cores. Commands that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Tests of Ray wait long for its processes: last, they would keep one worker waiting.
    items.sort(key=lambda item: "workers" not in item.path.parts)


def pytest_configure() -> None:
    # A shell starts background commands with Ctrl-C ignored, and so may CI; the tests of
    # interrupted searches need it, in this process and in those they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def village() -> Instance:
    return read(VILLAGE)


@pytest.fixture(scope="session")
def village_plan(village: Instance) -> Solution:
    return solved(village, "ps-efficiency", stop=Stop(iterations=20)).solution


@pytest.fixture(scope="session")
def rough_plan(village: Instance) -> Solution:
    return solved(village, "ps", stop=Stop(iterations=1)).solution


@pytest.fixture(scope="session")
def small() -> Instance:
    return read(SMALL)
