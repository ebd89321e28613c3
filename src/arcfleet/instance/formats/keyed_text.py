"""Keyed text formats: the reader of what a table of keys, a dialect, describes.

A file is `KEY : value` lines and lists of `( 1, 2) word 3` link lines.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from arcfleet._files import quote, signed_number, split_lines, whole_number
from arcfleet.errors import FileError, FormatWarning, InstanceError
from arcfleet.instance.formats.dialect import EXPLICIT_COSTS, Dialect, Section, counted
from arcfleet.instance.formats.format import Format
from arcfleet.instance.formats.keyed_writer import first_obstacle, format_keyed_text
from arcfleet.instance.instance import (
    MAX_NODE,
    MAX_NUMBER,
    MIN_NODE,
    Instance,
    Link,
    stated_attribution,
)
from arcfleet.instance.operations import Facility

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

#: A file may name more nodes than its links touch, but not enough to fill the memory.
_UNTOUCHED_NODES = 1_000_000
_LINK = re.compile(r"\(([^(),]*),([^(),]*)\)(.*)", re.DOTALL)
# Between the words of a key: UPPER_BOUND is also written UPPER BOUND.
_JOINT = r"(?:_|[ \t]+)"
_RULE = re.compile(r"-{2,}")


def keyed_formats(*dialects: Dialect) -> list[Format]:
    """Return the formats of dialects, whose keys together tell which one a file is in."""

    def writer(dialect: Dialect) -> Callable[[Path | str, Instance], str]:
        def write(path: Path | str, instance: Instance) -> str:
            obstacle = first_obstacle(instance, dialect)
            if obstacle is not None:
                others = written[written.index(dialect) + 1 :]
                able = [
                    f"{x.suffixes[0]} file ({x.title})"
                    for x in others
                    if first_obstacle(instance, x) is None
                ]
                raise InstanceError(
                    f"expected an instance that {dialect.title} can hold, got {obstacle} "
                    f"in instance {instance.name!r}; write a {(*able, '.json file')[0]} "
                    "instead"
                )
            return format_keyed_text(path, instance, dialect)

        return write

    def holder(dialect: Dialect) -> Callable[[Instance], bool]:
        return lambda instance: first_obstacle(instance, dialect) is None

    key_line = _key_line(_keys_of(dialects))
    written = [dialect for dialect in dialects if dialect.is_written]
    return [
        Format(
            name=dialect.file_format,
            suffixes=dialect.suffixes,
            recognise=lambda text: any(
                key_line.fullmatch(line.strip()) for line in split_lines(text)
            ),
            read=lambda path, text: read_keyed_text(path, text, dialects),
            write=writer(dialect) if dialect.is_written else None,
            holds=holder(dialect),
        )
        for dialect in dialects
    ]


def read_keyed_text(path: Path | str, text: str, dialects: Sequence[Dialect]) -> Instance:
    """Read the text of `path`, written in one of `dialects`."""
    records = scan(path, text, _keys_of(dialects))
    dialect = _recognise(path, records, dialects)
    content = _collect(path, records, dialect)
    links = tuple(
        link for section in dialect.sections for _, link in content.links[section.list_key]
    )
    _check_counts(content)
    _check_costs(content, links)
    comment = content.optional_text(dialect.comment)
    longest = dialect.max_route_cost
    try:
        return Instance(
            name=content.line(dialect.name).value,
            nodes=_nodes(content),
            links=links,
            depot=content.node(dialect.depot),
            capacity=content.number(dialect.capacity, 1, MAX_NUMBER),
            route_cost=(
                content.number(dialect.route_cost, 0, MAX_NUMBER)
                if dialect.route_cost
                else 0
            ),
            stated_vehicles=content.optional_number(dialect.vehicles),
            upper_bound=content.optional_number(dialect.upper_bound),
            comment=comment,
            attribution=stated_attribution(comment, has_coordinates=False),
            max_route_cost=(
                content.number(longest, 1, MAX_NUMBER)
                if longest is not None and longest in content.keys
                else None
            ),
            facilities=_facilities(content),
            fewest_routes=bool(dialect.telling_keys),
        )
    except InstanceError as error:
        raise FileError(path, str(error)) from error


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a file: each key once, and the links of each list with their lines."""

    path: Path | str
    dialect: Dialect
    last_line: int
    keys: dict[str, KeyLine] = field(default_factory=dict)
    links: dict[str, list[tuple[LinkLine, Link]]] = field(default_factory=dict)

    def line(self, key: str) -> KeyLine:
        """Return the line of a key that every file must have."""
        if key not in self.keys:
            raise FileError(
                self.path,
                f"expected a line '{key} : ...' ({self.dialect.title}), found none "
                "up to the end of the file",
                self.last_line,
            )
        return self.keys[key]

    def number(self, key: str, least: int, most: int) -> int:
        """Return the number of a key that every file must have."""
        line = self.line(key)
        value = whole_number(line.value, least, most)
        if value is None:
            what = f"{key} to be a whole number from {least} to {most}"
            raise _unexpected(self.path, what, line)
        return value

    def node(self, key: str) -> int:
        """Return the node number of a key that every file must have."""
        if not self.dialect.any_nodes:
            return self.number(key, 0, MAX_NUMBER)
        line = self.line(key)
        value = _node_number(line.value)
        if value is None:
            raise _unexpected(self.path, f"{key} to be a node number", line)
        return value

    def optional_number(self, key: str | None) -> int | None:
        """Return the number of a key that a file may have."""
        return (
            None if key is None or key not in self.keys else self.number(key, 0, MAX_NODE)
        )

    def optional_text(self, key: str | None) -> str:
        """Return the text of a key that a file may have."""
        return "" if key is None or key not in self.keys else self.keys[key].value


def _unexpected(path: Path | str, expected: str, line: KeyLine | LinkLine) -> FileError:
    found = quote(line.text)
    return FileError(path, f"expected {expected}, found {found}", line.number)


def _recognise(
    path: Path | str, records: list[KeyLine | LinkLine], dialects: Sequence[Dialect]
) -> Dialect:
    """Find the one dialect that has all keys of the file."""
    found = {record.key for record in records if isinstance(record, KeyLine)}
    candidates = [
        dialect
        for dialect in dialects
        if not dialect.telling_keys or dialect.telling_keys & found
    ]
    any_key = False
    for record in records:
        if isinstance(record, LinkLine):
            continue
        any_key = True
        remaining = [dialect for dialect in candidates if record.key in dialect.keys]
        if not remaining:
            titles = " or ".join(dialect.title for dialect in candidates)
            what = f"a key of {titles} like the lines before"
            raise _unexpected(path, what, record)
        candidates = remaining
    titles = " or ".join(dialect.title for dialect in candidates)
    if not any_key:
        raise FileError(path, f"expected an instance in {titles} or JSON, found no key")
    if len(candidates) > 1:
        counts = " or ".join(dialect.sections[0].count_key for dialect in candidates)
        raise FileError(path, f"expected a key that tells {titles}, {counts}, found none")
    return candidates[0]


def _collect(
    path: Path | str, records: list[KeyLine | LinkLine], dialect: Dialect
) -> _Content:
    """Sort the records by key and list."""
    sections = {section.list_key: section for section in dialect.sections}
    content = _Content(
        path, dialect, records[-1].number, links={key: [] for key in sections}
    )
    section: Section | None = None
    for record in records:
        if isinstance(record, KeyLine):
            if record.key in content.keys:
                raise FileError(
                    path,
                    f"expected {record.key} once, found it on line "
                    f"{content.keys[record.key].number} and again: {quote(record.text)}",
                    record.number,
                )
            content.keys[record.key] = record
            section = sections.get(record.key)
            if section is not None and record.value:
                raise _unexpected(path, f"nothing after {record.key}", record)
        elif section is None:
            what = f"links only in a list such as {dialect.sections[0].list_key}"
            raise _unexpected(path, what, record)
        else:
            link = _link(path, record, section, dialect)
            content.links[section.list_key].append((record, link))
    return content


def _link(path: Path | str, record: LinkLine, section: Section, dialect: Dialect) -> Link:
    """Read one line of a list."""
    names = tuple(name.lower() for name in record.rest[::2])
    numbers = record.rest[1::2]
    words = tuple(word for word, _ in section.fields)
    if dialect.by_position:
        numeric = any(_node_number(name) is not None for name in names)
        fits = len(names) == len(words) and not numeric
    else:
        fits = names == words
    if not fits or len(numbers) != len(names):
        what = f"a line like {section.example!r} in {section.list_key}"
        raise _unexpected(path, what, record)
    values: dict[str, int] = {}
    for name, text in zip(("tail", "head"), (record.tail, record.head), strict=True):
        value = (
            _node_number(text) if dialect.any_nodes else whole_number(text, 0, MAX_NUMBER)
        )
        if value is None:
            least, most = (MIN_NODE, MAX_NODE) if dialect.any_nodes else (0, MAX_NUMBER)
            raise _wrong_number(path, record, text, least, most)
        values[name] = value
    for (_, name), text in zip(section.fields, numbers, strict=True):
        value = whole_number(text, 0, MAX_NUMBER)
        if value is None:
            raise _wrong_number(path, record, text, 0, MAX_NUMBER)
        values[name] = value
    return Link(
        tail=values["tail"],
        head=values["head"],
        cost=values["cost"],
        one_way=section.one_way,
        required=section.required,
        demand=values.get("demand", 0),
        service_cost=values.get("service_cost"),
    )


def _wrong_number(
    path: Path | str, record: LinkLine, text: str, least: int, most: int
) -> FileError:
    return FileError(
        path,
        f"expected whole numbers from {least} to {most}, "
        f"found {quote(text)} in {quote(record.text)}",
        record.number,
    )


def _node_number(text: str) -> int | None:
    """Return the number of a node, which may be below 0; None if it is none."""
    return signed_number(text, MIN_NODE, MAX_NODE)


def _facilities(content: _Content) -> tuple[Facility, ...]:
    """Read where vehicles empty, from a list of nodes such as `14,28`."""
    dialect = content.dialect
    if dialect.facility_cost is None or dialect.facilities is None:
        return ()
    cost = content.number(dialect.facility_cost, 0, MAX_NUMBER)
    line = content.keys.get(dialect.facilities)
    if line is None:
        return ()
    nodes = [_node_number(word) for word in line.value.replace(",", " ").split()]
    known = [node for node in nodes if node is not None]
    if not known or len(known) < len(nodes):
        what = f"{dialect.facilities} to be node numbers with commas, as in '14,28'"
        raise _unexpected(content.path, what, line)
    return tuple(Facility(node=node, cost=cost) for node in known)


def _check_counts(content: _Content) -> None:
    """Check the header's counts against the lists."""
    for section in content.dialect.sections:
        keys = {section.count_key, section.list_key}
        if not section.required and keys.isdisjoint(content.keys):
            continue  # neither announced nor there
        stated = content.number(section.count_key, 0, MAX_NUMBER)
        found = len(content.links[section.list_key])
        if stated != found:
            line = content.line(section.count_key)
            what = f"{line.key} to be the number of links in {section.list_key}, {found}"
            raise _unexpected(content.path, what, line)


def _check_costs(content: _Content, links: tuple[Link, ...]) -> None:
    """Check how costs are given; warn of a wrong sum, which is common."""
    given = content.keys.get(content.dialect.cost_kind or "")
    if given is not None and given.value.upper() != EXPLICIT_COSTS:
        raise _unexpected(content.path, f"{given.key} : {EXPLICIT_COSTS}", given)
    line = content.keys.get(content.dialect.total_cost or "")
    total = sum(link.cost for link in links if link.required)
    if line is not None and content.number(line.key, 0, MAX_NODE) != total:
        warnings.warn(
            f"{content.path}:{line.number}: expected {line.key} to be {total}, the sum of "
            f"the required costs, found {quote(line.text)}; the sum is not used",
            FormatWarning,
            stacklevel=2,
        )


def _nodes(content: _Content) -> tuple[int, ...]:
    """Find out whether nodes count from 0 or from 1, and that no link leaves them."""
    count = content.number(content.dialect.nodes, 1, MAX_NUMBER)
    depot = content.line(content.dialect.depot)
    mentions = [(depot.number, depot.text, content.node(depot.key))]
    for line, link in chain.from_iterable(content.links.values()):
        mentions += [(line.number, line.text, node) for node in (link.tail, link.head)]
    if content.dialect.any_nodes:
        sites = content.keys.get(content.dialect.facilities or "")
        if sites is not None:
            nodes = (facility.node for facility in _facilities(content))
            mentions += [(sites.number, sites.text, node) for node in nodes]
        labels = {node for _, _, node in mentions}
        if not counted(labels, count):
            return _labels(content, labels, count)
    mentions.sort()
    ends: dict[int, int] = {}
    for number, text, node in mentions:
        if node > count:
            raise FileError(
                content.path,
                f"expected nodes up to {count} ({content.dialect.nodes}), "
                f"found node {node} in {quote(text)}",
                number,
            )
        if node in (0, count):
            ends.setdefault(node, number)
        if len(ends) == 2:
            raise FileError(
                content.path,
                f"expected {count} nodes, 0 to {count - 1} or 1 to {count}, found node "
                f"{node} in {quote(text)} and node {count - node} on line "
                f"{ends[count - node]}",
                number,
            )
    if count > _UNTOUCHED_NODES + len(mentions):
        what = f"a number of nodes that fits {len(mentions) // 2} links"
        raise _unexpected(content.path, what, content.line(content.dialect.nodes))
    first = 0 if 0 in ends else 1 if count in ends else content.dialect.first_node
    return tuple(range(first, first + count))


def _labels(content: _Content, labels: set[int], count: int) -> tuple[int, ...]:
    """Return node numbers that are labels: all that the file mentions, in order."""
    if len(labels) != count:
        line = content.line(content.dialect.nodes)
        warnings.warn(
            f"{content.path}:{line.number}: expected {line.key} to be {len(labels)}, the "
            f"number of nodes that the file mentions, found {quote(line.text)}; the number "
            "is not used",
            FormatWarning,
            stacklevel=2,
        )
    return tuple(sorted(labels))


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key with what follows it; the value is empty for the head of a list."""

    number: int  # line number, from 1
    text: str  # the line as it stands in the file
    key: str  # the key in capitals, with underscores
    value: str  # the rest of the line without surrounding space


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link: two nodes in brackets, then words and numbers in turn."""

    number: int  # line number, from 1
    text: str  # the line as it stands in the file
    # Nodes in the brackets.
    tail: str
    head: str
    rest: tuple[str, ...]


def scan(path: Path | str, text: str, keys: Iterable[str]) -> list[KeyLine | LinkLine]:
    """Turn the lines of a file into records; a line that is neither raises FileError."""
    key_line = _key_line(keys)
    records: list[KeyLine | LinkLine] = []
    for number, line in enumerate(split_lines(text), start=1):
        content = line.strip()
        if not content or _RULE.fullmatch(content):
            continue
        if match := _LINK.fullmatch(content):
            tail, head, rest = match.groups()
            records.append(
                LinkLine(number, line, tail.strip(), head.strip(), tuple(rest.split()))
            )
        elif match := key_line.fullmatch(content):
            key = re.sub(_JOINT, "_", match[1]).upper()
            records.append(KeyLine(number, line, key, match[2].strip()))
        else:
            raise FileError(
                path,
                "expected a known key such as NOMBRE or NAME, or a link such as "
                f"'( 1, 2) cost 3', found {quote(line)}",
                number,
            )
    return records


def _keys_of(dialects: Sequence[Dialect]) -> frozenset[str]:
    return frozenset[str]().union(*(dialect.keys for dialect in dialects))


def _key_line(keys: Iterable[str]) -> re.Pattern[str]:
    # The longest key first, and only whole words, so that no key hides another.
    spellings = (
        re.escape(key).replace("_", _JOINT) for key in sorted(keys, key=len, reverse=True)
    )
    return re.compile(
        rf"({'|'.join(spellings)})(?=[\s:]|$)\s*:?(.*)", re.IGNORECASE | re.DOTALL
    )
