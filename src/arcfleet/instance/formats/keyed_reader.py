"""Records of a keyed text file into an Instance, strictly."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arcfleet.errors import FileError, FormatWarning, InstanceError
from arcfleet.instance.formats.dialect import EXPLICIT_COSTS
from arcfleet.instance.formats.keyed_text import KeyLine, LinkLine, scan
from arcfleet.instance.instance import MAX_NODE, MAX_NUMBER, Instance, Link
from arcfleet.instance.plain_text import quote, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.instance.formats.dialect import Dialect, Section

#: A file may name more nodes than its links touch, but not enough to fill the memory.
_UNTOUCHED_NODES = 1_000_000


def read_keyed_text(path: Path | str, text: str, dialects: Sequence[Dialect]) -> Instance:
    """Read the text of `path`, written in one of `dialects`."""
    every_key = frozenset[str]().union(*(dialect.keys for dialect in dialects))
    records = scan(path, text, every_key)
    dialect = _recognise(path, records, dialects)
    content = _collect(path, records, dialect)
    links = tuple(
        link.link
        for section in dialect.sections
        for link in content.links[section.list_key]
    )
    _check_counts(content)
    _check_costs(content, links)
    try:
        return Instance(
            name=content.line(dialect.name).value,
            nodes=_nodes(content),
            links=links,
            depot=content.number(dialect.depot, 0, MAX_NUMBER),
            capacity=content.number(dialect.capacity, 1, MAX_NUMBER),
            route_cost=(
                content.number(dialect.route_cost, 0, MAX_NUMBER)
                if dialect.route_cost
                else 0
            ),
            stated_vehicles=content.optional_number(dialect.vehicles),
            upper_bound=content.optional_number(dialect.upper_bound),
            comment=content.optional_text(dialect.comment),
        )
    except InstanceError as error:
        raise FileError(path, str(error)) from error


@dataclass(frozen=True, slots=True)
class _PlacedLink:
    """A link with the line it came from."""

    source: LinkLine
    link: Link


@dataclass(frozen=True, slots=True)
class _Content:
    """What a file says: each key once, and the links of each list."""

    path: Path | str
    dialect: Dialect
    last_line: int
    keys: dict[str, KeyLine] = field(default_factory=dict)
    links: dict[str, list[_PlacedLink]] = field(default_factory=dict)

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
            raise FileError(
                self.path,
                f"expected {key} to be a whole number from {least} to {most}, "
                f"found {quote(line.text)}",
                line.number,
            )
        return value

    def optional_number(self, key: str | None) -> int | None:
        """Return the number of a key that a file may have."""
        return (
            self.number(key, 0, MAX_NODE) if key is not None and key in self.keys else None
        )

    def optional_text(self, key: str | None) -> str:
        """Return the text of a key that a file may have."""
        return self.keys[key].value if key is not None and key in self.keys else ""


def _recognise(
    path: Path | str, records: list[KeyLine | LinkLine], dialects: Sequence[Dialect]
) -> Dialect:
    """Find the one dialect that has all keys of the file."""
    candidates = list(dialects)
    any_key = False
    for record in records:
        if isinstance(record, LinkLine):
            continue
        any_key = True
        remaining = [dialect for dialect in candidates if record.key in dialect.keys]
        if not remaining:
            so_far = " or ".join(dialect.title for dialect in candidates)
            raise FileError(
                path,
                f"expected a key of {so_far} like the lines before, "
                f"found {quote(record.text)}, which is of another format",
                record.number,
            )
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
                raise FileError(
                    path,
                    f"expected nothing after {record.key}, found {quote(record.text)}",
                    record.number,
                )
        elif section is None:
            raise FileError(
                path,
                f"expected links only in a list such as {dialect.sections[0].list_key}, "
                f"found {quote(record.text)}",
                record.number,
            )
        else:
            link = _link(path, record, section)
            content.links[section.list_key].append(_PlacedLink(record, link))
    return content


def _link(path: Path | str, record: LinkLine, section: Section) -> Link:
    """Read one line of a list."""
    values: dict[str, int] = {}
    names = tuple(name.lower() for name in record.rest[::2])
    numbers = record.rest[1::2]
    if names != tuple(word for word, _ in section.fields) or len(numbers) != len(names):
        raise FileError(
            path,
            f"expected a line like {section.example!r} in {section.list_key}, "
            f"found {quote(record.text)}",
            record.number,
        )
    fields = [name for _, name in section.fields]
    for name, text in zip(
        ("tail", "head", *fields), (record.tail, record.head, *numbers), strict=True
    ):
        value = whole_number(text, 0, MAX_NUMBER)
        if value is None:
            raise FileError(
                path,
                f"expected whole numbers from 0 to {MAX_NUMBER}, "
                f"found {quote(text)} in {quote(record.text)}",
                record.number,
            )
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


def _check_counts(content: _Content) -> None:
    """Hold the header's counts against the lists."""
    for section in content.dialect.sections:
        keys = {section.count_key, section.list_key}
        if not section.required and keys.isdisjoint(content.keys):
            continue  # neither announced nor there
        stated = content.number(section.count_key, 0, MAX_NUMBER)
        found = len(content.links[section.list_key])
        if stated != found:
            raise FileError(
                content.path,
                f"expected {section.count_key} to be the number of links in "
                f"{section.list_key}, {found}, "
                f"found {quote(content.line(section.count_key).text)}",
                content.line(section.count_key).number,
            )


def _check_costs(content: _Content, links: tuple[Link, ...]) -> None:
    """Check the kind of the costs; warn of a wrong sum, which is common."""
    kind = content.keys.get(content.dialect.cost_kind or "")
    if kind is not None and kind.value.upper() != EXPLICIT_COSTS:
        raise FileError(
            content.path,
            f"expected {kind.key} : {EXPLICIT_COSTS}, found {quote(kind.text)}",
            kind.number,
        )
    stated = content.optional_number(content.dialect.total_cost)
    total = sum(link.cost for link in links if link.required)
    if content.dialect.total_cost is not None and stated not in (None, total):
        line = content.line(content.dialect.total_cost)
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
    mentions = [(depot.number, depot.text, content.number(depot.key, 0, MAX_NUMBER))]
    for placed in (placed for links in content.links.values() for placed in links):
        for node in (placed.link.tail, placed.link.head):
            mentions.append((placed.source.number, placed.source.text, node))
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
        line = content.line(content.dialect.nodes)
        raise FileError(
            content.path,
            f"expected a number of nodes that fits {len(mentions) // 2} links, "
            f"found {quote(line.text)}",
            line.number,
        )
    first = 0 if 0 in ends else 1 if count in ends else content.dialect.first_node
    return tuple(range(first, first + count))
