"""Read and write instance files: find the format, call its reader or writer."""

from __future__ import annotations

import difflib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import quote, read_text, write_text_atomically
from arcfleet.errors import FileError, OptionError
from arcfleet.instance.formats.carplib import ENGLISH, SPANISH
from arcfleet.instance.formats.json_format import format_json, read_json
from arcfleet.instance.formats.keyed_text import (
    format_keyed_text,
    read_keyed_text,
    require_no_obstacle,
)
from arcfleet.instance.formats.mcarp import MCARP

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance

_FORMATS = ("carplib", "mcarp", "json")
_SUFFIXES = {".dat": "carplib", ".txt": "mcarp", ".json": "json"}
#: Names of files that people take to a planner first.
_STREET_MAPS = (".pbf", ".osm", ".osm.gz", ".osm.bz2", ".geojson")
_EXAMPLE = "example:"


def read(path: Path | str) -> Instance:
    """Read an instance: CARPLIB with Spanish or English keys, MCARP or our own JSON.

    The content tells the format, not the name of the file. An accepted deviation from
    the format is a FormatWarning, any other a FileError with file and line.

    The path "example:denver" reads the example that comes with the package.
    """
    if str(path).startswith(_EXAMPLE):
        return _read_example(str(path).removeprefix(_EXAMPLE))
    if str(path).lower().endswith(_STREET_MAPS) and Path(path).is_file():
        raise FileError(
            path,
            "expected an instance, found a street map; make an instance of it with "
            "`arcfleet scene`",
        )
    text = read_text(path)
    if text.lstrip().startswith(("{", "[")):
        return read_json(path, text)
    return read_keyed_text(path, text, (SPANISH, ENGLISH, MCARP))


def _read_example(name: str) -> Instance:
    folder = resources.files("arcfleet.instance") / "examples"
    names = sorted(file.name.removesuffix(".json") for file in folder.iterdir())
    if name not in names:
        known = " or ".join(_EXAMPLE + each for each in names)
        raise OptionError(f"expected {known}, got {quote(_EXAMPLE + name)}")
    text = (folder / f"{name}.json").read_text(encoding="utf-8")
    return read_json(_EXAMPLE + name, text)


def write(instance: Instance, path: Path | str, file_format: str | None = None) -> None:
    """Write an instance so that reading it gives an equal one.

    Parameters
    ----------
    instance
        The instance. InstanceError says what the text formats cannot hold; what they
        lose without changing the problem, such as coordinates, is a FormatWarning.
    path
        The file; it is replaced only when the new one is complete.
    file_format
        "carplib" (Spanish keys), "mcarp" or "json"; by default after the suffix: .dat,
        .txt or .json.
    """
    if file_format is None:
        file_format = format_of(Path(path))
    if file_format not in _FORMATS:
        close = difflib.get_close_matches(str(file_format).lower(), _FORMATS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise OptionError(
            f"expected file_format carplib, mcarp or json, got {file_format!r}{hint}"
        )
    if file_format == "json":
        text = format_json(instance)
    elif file_format == "mcarp":
        require_no_obstacle(instance, MCARP, others=())
        text = format_keyed_text(path, instance, MCARP)
    else:
        require_no_obstacle(instance, SPANISH, others=(MCARP,))
        text = format_keyed_text(path, instance, SPANISH)
    write_text_atomically(path, text)


def format_of(path: Path) -> str:
    """Give the format that a suffix stands for, or raise OptionError if for none."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        close = difflib.get_close_matches(suffix, _SUFFIXES, n=1)
        hint = f"did you mean {close[0]}?" if close else "else name the format"
        raise OptionError(
            "expected a file name in .dat (carplib), .txt (mcarp) or .json, "
            f"got {path.name!r}; {hint}"
        )
    return _SUFFIXES[suffix]
