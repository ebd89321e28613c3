"""Suites: sets of instance files with reference costs, described in TOML."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from arcfleet._checks import nearest_name
from arcfleet._files import is_file, is_folder, quote, read_text, read_toml, whole_number
from arcfleet.bench.machine import shared_folder
from arcfleet.errors import FileError, OptionError

#: The suites that have names; the public instances are not part of the package.
_SUITES = Path(__file__).parent / "suites"
_KEYS = {"summary", "folder", "references", "sets"}

_SET_KEYS = {"name", "files"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteInstance:
    """An instance of a suite."""

    set_name: str  # name of its set
    name: str  # name of its file without the suffix
    path: Path  # its file, which may yet turn out to be unreadable
    reference: int | None  # best known cost; None where none is known
    proven: bool  # whether a lower bound shows that nothing is cheaper than the reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A collection of instances to measure methods on."""

    name: str  # name of the TOML file without the suffix
    summary: str  # description in one line; may be empty
    # Instances, set by set, each in the order of its numbers.
    instances: tuple[SuiteInstance, ...]


def read_suite(name_or_path: str) -> Suite:
    """Read a suite: the path of a TOML file, or the name of one in `suites`."""
    path = _find(name_or_path)
    content = read_toml(path)
    _check_keys(path, content, _KEYS)
    sets = content.get("sets")
    if not (isinstance(sets, list) and sets and all(isinstance(s, dict) for s in sets)):
        raise FileError(path, "expected at least one [[sets]] with name and files")
    folder = _folder(path, content.get("folder"))
    references = _read_references(path, folder, content.get("references"))
    instances: list[SuiteInstance] = []
    for entry in sets:
        _check_keys(path, entry, _SET_KEYS)
        set_name, patterns = entry.get("name"), entry.get("files")
        if not (isinstance(set_name, str) and set_name):
            raise FileError(path, f"expected a name for each set, got {set_name!r:.60}")
        if not (
            isinstance(patterns, list)
            and patterns
            and all(isinstance(p, str) for p in patterns)
        ):
            raise FileError(path, f"expected a list of files in set {quote(set_name)}")
        for file in _files(path, folder, patterns):
            reference, proven = references.get(file.stem, (None, False))
            instances.append(
                SuiteInstance(
                    set_name=set_name,
                    name=file.stem,
                    path=file,
                    reference=reference,
                    proven=proven,
                )
            )
    counts = Counter((x.set_name, x.name) for x in instances)
    for (_, name), count in counts.items():
        if count > 1:
            raise FileError(
                path, f"expected each instance once per set, got {name!r:.60} twice"
            )
    summary = str(content.get("summary", ""))
    return Suite(name=path.stem, summary=summary, instances=tuple(instances))


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path  # reading it says what is wrong with it
    known = {file.stem: file for file in sorted(_SUITES.glob("*.toml"))}
    if name_or_path not in known:
        near = nearest_name(name_or_path, known)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(known)}"
        raise OptionError(
            f"expected the name of a suite or the path of a .toml file, "
            f"got {name_or_path!r}: {hint}"
        )
    return known[name_or_path]


def _folder(path: Path, folder: object) -> Path:
    """Return the folder of the files: beside the suite, or that of the collection."""
    if folder is not None:
        if not (isinstance(folder, str) and is_folder(path.parent / folder)):
            raise FileError(path, f"expected folder to be a directory, got {folder!r:.60}")
        return path.parent / folder
    shared = shared_folder()
    collection = Path("carplib") if shared is None else shared / "carplib"
    if shared is None or not collection.is_dir():
        raise OptionError(
            f"expected the public instances in {str(collection)!r}, found no such folder: "
            "set ARCFLEET_SHARED to the folder that holds carplib"
        )
    return collection


def _read_references(path: Path, folder: Path, name: object) -> dict[str, tuple[int, bool]]:
    """Read reference costs: by instance, the cost and whether it is proven optimal."""
    if name is None:
        return {}
    if not isinstance(name, str):
        raise FileError(path, f"expected references to be a file name, got {name!r:.60}")
    table = folder / name
    if not is_file(table):
        raise FileError(path, f"expected references in {folder}, found no {quote(name)}")
    rows = csv.DictReader(read_text(table).splitlines())
    try:
        return _references(table, rows)
    except csv.Error as error:
        raise FileError(
            table, f"expected CSV, found a row that is not ({error})", rows.line_num
        ) from error


def _references(table: Path, rows: csv.DictReader[str]) -> dict[str, tuple[int, bool]]:
    """Return the costs of a table, as `_read_references` does."""
    if not {"name", "upper_bound"} <= set(rows.fieldnames or ()):
        raise FileError(table, "expected columns name and upper_bound", 1)
    references = {}
    for row in rows:
        upper, lower = row["upper_bound"] or "", row.get("lower_bound") or ""
        cost = whole_number(upper, 0, 2**63 - 1)
        if cost is None or (lower and whole_number(lower, 0, 2**63 - 1) is None):
            raise FileError(
                table,
                f"expected whole numbers as bounds, got {quote(upper)} and {quote(lower)}",
                rows.line_num,
            )
        references[row["name"]] = (cost, upper == lower)
    return references


def _files(path: Path, folder: Path, patterns: list[str]) -> list[Path]:
    found: list[Path] = []
    for pattern in patterns:
        try:
            files = sorted(folder.glob(pattern), key=_by_number)
        except (OSError, ValueError, NotImplementedError) as error:
            raise FileError(
                path, f"expected files relative to {folder}, got {quote(pattern)}"
            ) from error
        if not files:
            raise FileError(
                path, f"expected files in {folder}, found none like {quote(pattern)}"
            )
        found += files
    return found


def _by_number(file: Path) -> list[tuple[int, str]]:
    """Sort gdb2 before gdb10."""
    parts = re.split(r"(\d+)", file.stem)
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts]


def _check_keys(path: Path, content: dict[str, object], known: set[str]) -> None:
    for key in content:
        if key not in known:
            near = nearest_name(key, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise FileError(
                path, f"expected keys {', '.join(sorted(known))}, got {quote(key)}{hint}"
            )
