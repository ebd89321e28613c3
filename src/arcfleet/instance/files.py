"""Read and write instance files: find the format, call its reader or writer."""

from __future__ import annotations

import warnings
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._checks import nearest_name
from arcfleet._files import is_file, quote, read_text, write_text_atomically
from arcfleet.errors import FileError, OptionError
from arcfleet.instance.formats import FORMATS

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance

#: Names of files that people take to a planner first.
_STREET_MAPS = (".pbf", ".osm", ".osm.gz", ".osm.bz2", ".geojson")
_EXAMPLE = "example:"


def read(path: Path | str) -> Instance:
    """Read an instance: CARPLIB with Spanish or English keys, MCARP, MCARPTIF or JSON.

    The content tells the format, not the name of the file. An accepted deviation from
    the format is a FormatWarning, any other a FileError with file and line.

    The path "example:denver" reads the example that comes with the package.
    """
    if str(path).startswith(_EXAMPLE):
        return _read_example(str(path).removeprefix(_EXAMPLE))
    if str(path).lower().endswith(_STREET_MAPS) and is_file(Path(path)):
        raise FileError(
            path,
            "expected an instance, found a street map; make an instance of it with "
            "`arcfleet scene`",
        )
    text = read_text(path)
    recognised = (entry for entry in FORMATS.values() if entry.recognise(text))
    # What no format recognises goes to the keyed text's reader, which names the line.
    return next(recognised, FORMATS["carplib"]).read(path, text)


def _read_example(name: str) -> Instance:
    folder = resources.files("arcfleet.instance") / "examples"
    names = sorted(file.name.removesuffix(".json") for file in folder.iterdir())
    if name not in names:
        known = " or ".join(_EXAMPLE + each for each in names)
        raise OptionError(f"expected {known}, got {quote(_EXAMPLE + name)}")
    text = (folder / f"{name}.json").read_text(encoding="utf-8")
    return FORMATS["json"].read(_EXAMPLE + name, text)


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
        "carplib" (Spanish keys), "mcarp", "mcarptif" or "json"; by default after the
        suffix: .dat (carplib), .txt (mcarp, or mcarptif where only that can hold the
        instance) or .json.
    """
    write_text_atomically(path, _format(instance, path, file_format))


def check_holds(instance: Instance, path: Path | str) -> None:
    """Raise what `write` would raise of the instance; for use before long work."""
    if format_of(Path(path)) != "json":  # which holds every instance
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _format(instance, path, None)


def _format(instance: Instance, path: Path | str, file_format: str | None) -> str:
    if file_format is None:
        file_format = format_of(Path(path), instance)
    written = [name for name, entry in FORMATS.items() if entry.write is not None]
    entry = FORMATS.get(file_format)
    if entry is None or entry.write is None:
        near = nearest_name(file_format, written)
        hint = f"; did you mean {near}?" if near else ""
        raise OptionError(
            f"expected file_format {', '.join(written[:-1])} or {written[-1]}, "
            f"got {file_format!r}{hint}"
        )
    return entry.write(path, instance)


def format_of(path: Path, instance: Instance | None = None) -> str:
    """Return the format that a suffix stands for, or raise OptionError if for none.

    Where it stands for several, that is the first that can hold the instance, if any.
    """
    names: dict[str, str] = {}
    for entry in FORMATS.values():
        for suffix in entry.suffixes:
            names.setdefault(suffix, entry.name)
    suffix = path.suffix.lower()
    if suffix not in names:
        near = nearest_name(suffix, names)
        hint = f"did you mean {near}?" if near else "else name the format"
        known = [f"{suffix} ({name})" for suffix, name in names.items()]
        raise OptionError(
            f"expected a file name in {', '.join(known[:-1])} or {known[-1]}, "
            f"got {path.name!r}; {hint}"
        )
    able = (
        entry.name
        for entry in FORMATS.values()
        if suffix in entry.suffixes and instance is not None and entry.holds(instance)
    )
    return next(able, names[suffix])
