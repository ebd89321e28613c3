"""The mutants that the runner shows to the tests."""

from pathlib import Path
from typing import Any

import pytest

from tools.mutation.core import core_mutants
from tools.mutation.mutants import mutants

TEXT = '''"""A docstring with == in it."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pathlib import Path
LIMIT: int = 3

def fits(load: int, more: int = 1) -> bool:
    """Return 1 + 1."""
    if load < 0:
        raise ValueError(f"{load} is below {0}")
    return load + more <= LIMIT and not load == 9
'''


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "some.py").write_text(TEXT)
    return tmp_path / "some.py"


def test_every_change_that_runs_and_no_text_or_type(path: Path) -> None:
    assert [(mutant.line, mutant.change, mutant.function) for mutant in mutants(path)] == [
        (5, "3 -> 4", ""),
        (7, "1 -> 2", ""),
        (9, "condition negated", "fits"),
        (9, "Lt -> LtE", "fits"),
        (9, "0 -> 1", "fits"),
        (10, "raise dropped", "fits"),
        (11, "return None", "fits"),
        (11, "and -> or", "fits"),
        (11, "LtE -> Lt", "fits"),
        (11, "Add -> Sub", "fits"),
        (11, "not dropped", "fits"),
        (11, "Eq -> NotEq", "fits"),
        (11, "9 -> 10", "fits"),
    ]


def test_each_mutant_has_its_own_change(path: Path) -> None:
    found = {}
    for mutant in mutants(path):
        names: dict[str, Any] = {}
        exec(mutant.code(), names)
        found[mutant.change] = names["fits"]
    assert found["3 -> 4"](3)
    assert not found["1 -> 2"](2)
    assert found["raise dropped"](-5)
    assert found["return None"](2) is None
    assert not found["LtE -> Lt"](2)
    assert found["Add -> Sub"](4)
    assert not found["not dropped"](2)


def test_mutants_of_cpp() -> None:
    text = (
        "#include <x> // a < b\n"
        "for (int j = 1; j <= n; ++j) { std::vector<int> v(2); }\n"
        'if (!a && b) { throw Error("a + b"); }\n'
    )
    assert [(m.line, m.old, m.new.strip()) for m in core_mutants(text)] == [
        (2, "1", "2"),
        (2, "<=", "<"),
        (2, "++", "--"),
        (2, "2", "3"),
        (3, "(!", "("),
        (3, "&&", "||"),
    ]
