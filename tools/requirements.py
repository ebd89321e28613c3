"""Print what extras of the package ask for: `python -m tools.requirements test`.

With --lowest every version is the least one that is allowed.
"""

import sys
import tomllib
from pathlib import Path


def requirements(extras: list[str], *, lowest: bool = False) -> list[str]:
    """Return the requirements of the package itself and of some extras."""
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += of_extra(project["optional-dependencies"], extra)
    return [text.replace(">=", "==") for text in found] if lowest else found


def of_extra(listed: dict[str, list[str]], extra: str) -> list[str]:
    """Return the requirements of an extra, with those of extras that it is made of."""
    found = []
    for text in listed[extra]:
        if text.startswith("arcfleet["):
            names = text.removeprefix("arcfleet[").removesuffix("]").split(",")
            found += [one for name in names for one in of_extra(listed, name)]
        else:
            found.append(text)
    return found


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--lowest"]
    print("\n".join(requirements(names, lowest="--lowest" in sys.argv)))
