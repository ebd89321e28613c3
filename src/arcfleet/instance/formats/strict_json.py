"""Strict reading of our own JSON files: every member known, typed and named in errors."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NoReturn, TypeVar

from arcfleet._checks import nearest_name
from arcfleet._files import parse_json, quote
from arcfleet.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LARGEST = sys.float_info.max
_LONGEST_KEY = 40

Word = TypeVar("Word", bound=str)


class _RepeatedKey(dict[str, object]):
    """An object with a key twice; refused where it is met, so that its place is known."""

    key = ""


class _NotANumber:
    """NaN or Infinity, which Python's parser lets through and JSON does not know."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling

    def __repr__(self) -> str:
        return self.spelling


def open_document(
    path: Path | str, text: str, file_format: str, version: int, keys: frozenset[str]
) -> JsonObject:
    """Parse `text` and check that it is a `file_format` of at most `version`."""
    value = parse_json(path, text, object_pairs_hook=_members, parse_constant=_NotANumber)
    if not isinstance(value, dict):
        raise FileError(path, f"expected a JSON object, found {_describe(value)}")
    if value.get("format") != file_format:
        found = _describe(value["format"]) if "format" in value else "no format"
        raise FileError(path, f"expected format {file_format!r}, found {found}")
    # The version comes before the keys: a newer one may well have keys unknown here.
    header = JsonObject(path, "", value, keys=None)
    if header.integer("version", 1, 2**31 - 1) > version:
        raise FileError(
            path,
            f"expected version {version} of {file_format} or older, "
            f"found {value['version']}; update arcfleet to read it",
        )
    return JsonObject(path, "", value, keys=keys | {"format", "version"})


class JsonObject:
    """An object of a document that knows its place in it, as `links[3]`, and its keys."""

    def __init__(
        self, path: Path | str, where: str, value: object, keys: frozenset[str] | None
    ) -> None:
        self.path = path
        self.where = where
        if not isinstance(value, dict):
            self.refuse(where, "an object", value)
        if isinstance(value, _RepeatedKey):
            raise FileError(
                path, f"expected every key once, found {self.place(value.key)} twice"
            )
        self._members: dict[str, object] = value
        for key in value:
            if keys is not None and key not in keys:
                near = nearest_name(key, keys)
                hint = f"; did you mean {near}?" if near else ""
                raise FileError(
                    path, f"expected only known keys, found {self.place(key)}{hint}"
                )

    def __contains__(self, key: str) -> bool:
        """Return whether the object has the key."""
        return key in self._members

    def place(self, key: str) -> str:
        """Return the place of a member, as in `links[3].cost`."""
        # A key of the file may hold anything; ours are plain words.
        key = key if key.isidentifier() and len(key) <= _LONGEST_KEY else quote(key)
        return f"{self.where}.{key}" if self.where else key

    def refuse(self, where: str, expected: str, value: object) -> NoReturn:
        """Raise FileError for the value at `where`."""
        place = f" at {where}" if where else ""
        raise FileError(self.path, f"expected {expected}{place}, found {_describe(value)}")

    def integer(self, key: str, least: int, most: int) -> int:
        """Return an integer."""
        return self._integer(self.place(key), self._value(key), least, most)

    def optional_integer(self, key: str, least: int, most: int) -> int | None:
        """Return an integer, or None if the key is absent."""
        return self.integer(key, least, most) if key in self else None

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            self.refuse(self.place(key), "a string", value)
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.refuse(self.place(key), "a string that UTF-8 can hold", value)
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            self.refuse(self.place(key), "true or false", value)
        return value

    def items(self, key: str, optional: bool = False) -> Iterator[tuple[str, object]]:
        """Yield place and value of every item of an array."""
        value = self._members.get(key, []) if optional else self._value(key)
        if not isinstance(value, list):
            self.refuse(self.place(key), "an array", value)
        for index, item in enumerate(value):
            yield f"{self.place(key)}[{index}]", item

    def integers(
        self, key: str, least: int, most: int, optional: bool = False
    ) -> tuple[int, ...]:
        """Return an array of integers."""
        items = self.items(key, optional)
        return tuple(self._integer(place, item, least, most) for place, item in items)

    def integer_rows(
        self, key: str, least: int, most: int
    ) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield place and integers of every item of an array of arrays, if it is there."""
        for place, item in self.items(key, optional=True):
            if not isinstance(item, list):
                self.refuse(place, "an array of integers", item)
            yield (
                place,
                tuple(
                    self._integer(f"{place}[{index}]", number, least, most)
                    for index, number in enumerate(item)
                ),
            )

    def choice(self, key: str, choices: tuple[Word, ...], default: Word) -> Word:
        """Return one of several words."""
        value = self._members.get(key, default)
        found = next((choice for choice in choices if choice == value), None)
        if found is None:
            words = ", ".join(quote(choice) for choice in choices)
            self.refuse(self.place(key), f"one of {words}", value)
        return found

    def points(self, key: str) -> tuple[tuple[float, float], ...]:
        """Return an array of number pairs, empty if the key is absent."""
        return tuple(
            self._point(place, item) for place, item in self.items(key, optional=True)
        )

    def objects(
        self, key: str, keys: frozenset[str], optional: bool = False
    ) -> Iterator[JsonObject]:
        """Yield the objects of an array."""
        for place, item in self.items(key, optional):
            yield JsonObject(self.path, place, item, keys)

    def optional_object(self, key: str, keys: frozenset[str]) -> JsonObject | None:
        """Return an object, or None if the key is absent."""
        if key not in self:
            return None
        return JsonObject(self.path, self.place(key), self._members[key], keys)

    def ids(self, key: str) -> tuple[int | str, ...]:
        """Return an array of whole numbers and strings, empty if the key is absent."""
        return tuple(self._id(place, item) for place, item in self.items(key, True))

    def scalars(self, key: str) -> dict[str, str | int | float | bool | None]:
        """Return an object of any names without arrays or objects in it, or an empty one.

        What its values may be, whoever takes them checks.
        """
        if key not in self:
            return {}
        inner = JsonObject(self.path, self.place(key), self._members[key], keys=None)
        for name, value in inner._members.items():
            if isinstance(value, list | dict | _NotANumber):
                expected = "a string, a number, true, false or null"
                self.refuse(inner.place(name), expected, value)
        return dict(inner._members)  # type: ignore[arg-type]

    def number(self, key: str) -> float:
        """Return a finite number."""
        return self._finite(self.place(key), self._value(key))

    def optional_number(self, key: str) -> float | None:
        """Return a finite number, or None if the key is absent."""
        return self.number(key) if key in self else None

    def _value(self, key: str, default: object = None) -> object:
        if key not in self._members and default is None:
            raise FileError(self.path, f"expected {self.place(key)}, found no such key")
        return self._members.get(key, default)

    def _integer(self, place: str, value: object, least: int, most: int) -> int:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not (is_integer and least <= value <= most):  # type: ignore[operator]
            self.refuse(place, f"an integer from {least} to {most}", value)
        return value  # type: ignore[return-value]

    def _id(self, place: str, value: object) -> int | str:
        if isinstance(value, bool) or not isinstance(value, int | str):
            self.refuse(place, "a whole number or a string", value)
        return value

    def _point(self, place: str, value: object) -> tuple[float, float]:
        if not isinstance(value, list) or len(value) != 2:
            self.refuse(place, "[longitude, latitude]", value)
        return self._finite(f"{place}[0]", value[0]), self._finite(f"{place}[1]", value[1])

    def _finite(self, place: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(place, "a number", value)
        # 1e999 is parsed into infinity, and float() fails on integers that long.
        if not abs(value) <= _LARGEST:
            self.refuse(place, "a smaller number", value)
        return float(value)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = _RepeatedKey(members)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a huge number"
    return quote(value) if isinstance(value, str) else repr(value)


def dump(value: object) -> str:
    """Return the JSON text of a value, on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
