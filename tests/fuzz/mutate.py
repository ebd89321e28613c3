"""Damage to files that knows what is in them: the same random numbers, the same damage."""

import bz2
import gzip
import io
import json
import re
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutator = Callable[[Random, bytes], bytes]

_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")
_TOKEN = re.compile(rb"[A-Za-z_]+|-?[0-9.]+|\"[^\"\n]{0,80}\"|[^\sA-Za-z0-9]")
_NUMBERS = (
    *("0", "-1", "1", "2", "255", "1e400", "-1e400", "1e-400", "NaN", "nan", "inf", "-inf"),
    *(str(2**power + more) for power in (15, 31, 32, 53, 63, 64, 80) for more in (-1, 0)),
    *(str(-(2**power)) for power in (31, 63)),
    *(
        "9" * 30,
        "9" * 400,
        "9" * 5000,
        "0." + "3" * 5000,
        "1_0",
        "+1",
        "0x1f",
        "\u0661",
        "1.5",
        "",
    ),
    *("180.0000001", "-90.1", "1e300", "true", '"1"', "[1]", "{}", "null"),
)
_TEXTS = (
    *("", " ", "\0", "\x1a", "\u2028", "\ud7ff", "\U0001f600", "a" * 300, "b" * 70_000),
    *("../../etc", "/" + "d" * 5000, "*" * 40, "**/**/**", "[", "]]>", "&lol;", "<", ">"),
    *(
        "[" * 3000,
        "{" * 3000,
        '{"a":' * 3000,
        "(" * 3000,
        "%s%n",
        "yes",
        "nan",
        "\r",
        "\n\n",
    ),
    *('"', "'", '"""', ";", ",", "\t", "=", "# ", "-- ", "<!--", "<![CDATA["),
)
_BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**400),
    *(-(2**63), 0.5, 1e308, -1e308, 1e-320, float("nan"), float("inf"), float("-inf")),
    *("", "a", "\0", "\ud800", "x" * 5000, "1", "nan", "/" + "n" * 5000, "../x"),
    *([], {}, [[]], [1, 2], ["a"], {"a": 1}, [None], {"": None}),
)


def damaged(random: Random, data: bytes, kinds: tuple[Mutator, ...]) -> bytes:
    """Damage data once or several times, by any of some kinds."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        data = random.choice(kinds)(random, data)
    return data


def flip(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def put_bytes(random: Random, data: bytes) -> bytes:
    at = random.randint(0, len(data))
    new = random.choice((*_BYTES, random.randbytes(random.randint(1, 8))))
    return data[:at] + new + data[at + random.choice((0, 1, len(new))) :]


def put_integer(random: Random, data: bytes) -> bytes:
    """Overwrite some bytes by a number of 1 to 8 bytes: lengths, counts, offsets."""
    width = random.choice((1, 2, 4, 8))
    at = random.randint(0, max(0, len(data) - width))
    value = random.choice(
        (0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
    )
    order = random.choice(("little", "big"))
    new = (value % (1 << 8 * width)).to_bytes(width, order)  # type: ignore[arg-type]
    return data[:at] + new + data[at + width :]


def cut(random: Random, data: bytes) -> bytes:
    first, last = sorted(random.randint(0, len(data)) for _ in range(2))
    return random.choice((data[:first], data[first:], data[:first] + data[last:]))


def double(random: Random, data: bytes) -> bytes:
    first, last = sorted(random.randint(0, len(data)) for _ in range(2))
    times = random.choice((1, 1, 3, 20)) if last - first < 2000 else 1
    return data[:last] + data[first:last] * times + data[last:]


def change_number(random: Random, data: bytes) -> bytes:
    return _replace(random, data, _NUMBER, random.choice(_NUMBERS).encode())


def change_token(random: Random, data: bytes) -> bytes:
    return _replace(random, data, _TOKEN, random.choice((*_TEXTS, *_NUMBERS)).encode())


def swap_tokens(random: Random, data: bytes) -> bytes:
    found = list(_TOKEN.finditer(data))
    if len(found) < 2:
        return data
    one, two = sorted(random.sample(found, 2), key=re.Match.start)
    between = data[one.end() : two.start()]
    return data[: one.start()] + two[0] + between + one[0] + data[two.end() :]


def change_lines(random: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, two = (random.randrange(len(lines)) for _ in range(2))
    what = random.randrange(4)
    if what == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif what == 1:
        lines.insert(two, lines[one])
    elif what == 2:
        del lines[one]
    else:
        lines.insert(one, random.choice(_TEXTS).encode())
    return b"\n".join(lines)


def _replace(random: Random, data: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data + new
    place = random.choice(found)
    return data[: place.start()] + new + data[place.end() :]


BINARY: tuple[Mutator, ...] = (flip, put_bytes, put_integer, put_integer, cut, double)
TEXT: tuple[Mutator, ...] = (
    *(change_number, change_number, change_token, change_token, swap_tokens, change_lines),
    *(flip, put_bytes, cut, double),
)


def change_value(random: Random, value: Any) -> Any:
    """Change one place of a tree of dicts and lists: another type, gone, twice, deeper."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        what = random.random()
        if what < 0.1:
            return {name: one for name, one in value.items() if name != key}
        if what < 0.2:
            return {**value, random.choice(("new", "", "\0", "k" * 300)): value[key]}
        return {**value, key: change_value(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        what = random.random()
        if what < 0.1:
            return value[:at] + value[at + 1 :]
        if what < 0.2:
            return value[:at] + [value[at]] * random.choice((2, 50)) + value[at:]
        return [*value[:at], change_value(random, value[at]), *value[at + 1 :]]
    if random.random() < 0.1:
        for _ in range(random.choice((2, 400))):
            value = [value] if random.random() < 0.5 else {"type": value}
        return value
    if isinstance(value, str) and random.random() < 0.3:
        return change_token(random, value.encode(errors="replace")).decode(errors="replace")
    return random.choice(_VALUES)


def change_json(random: Random, data: bytes) -> bytes:
    try:
        value = json.loads(data)
        return json.dumps(change_value(random, value)).encode()
    except (ValueError, RecursionError):
        return change_token(random, data)


def change_toml(random: Random, data: bytes) -> bytes:
    """Change one place of a TOML file; it is written anew, with tables in one line."""
    try:
        changed = change_value(random, tomllib.loads(data.decode()))
        pairs = changed.items() if isinstance(changed, dict) else ()
        lines = [f"{json.dumps(key)} = {_toml(value)}" for key, value in pairs]
    except (ValueError, RecursionError):
        return change_token(random, data)
    return "\n".join(lines).encode(errors="replace")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "nan" if value is None else json.dumps(value, ensure_ascii=False, default=str)


TOML: tuple[Mutator, ...] = (change_toml, change_toml, change_toml, *TEXT)
JSON: tuple[Mutator, ...] = (change_json, change_json, change_json, *TEXT)


def in_gzip(inner: tuple[Mutator, ...]) -> Mutator:
    """Return the damage inside of a file packed by gzip."""

    def change(random: Random, data: bytes) -> bytes:
        try:
            plain = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return flip(random, data)
        return gzip.compress(random.choice(inner)(random, plain), 1, mtime=0)

    return change


def in_bzip2(inner: tuple[Mutator, ...]) -> Mutator:
    """Return the damage inside of a file packed by bzip2."""

    def change(random: Random, data: bytes) -> bytes:
        try:
            plain = bz2.decompress(data)
        except (OSError, EOFError, ValueError):
            return flip(random, data)
        return bz2.compress(random.choice(inner)(random, plain), 1)

    return change


def in_zip(inner: tuple[Mutator, ...]) -> Mutator:
    """Return the damage inside of a member of a zip file, whose checksums stay right."""

    def change(random: Random, data: bytes) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [(name, archive.read(name)) for name in archive.namelist()]
        except Exception:  # whatever zipfile makes of a file that is damaged already
            return flip(random, data)
        if not members:
            return data
        at = random.randrange(len(members))
        name, content = members[at]
        what = random.random()
        if what < 0.06:
            del members[at]
        elif what < 0.12:
            members[at] = (random.choice(("", "x", "n" * 300, "../x")), content)
        else:
            members[at] = (name, random.choice(inner)(random, content))
        return zip_of(members)

    return change


def zip_of(members: list[tuple[str, bytes]]) -> bytes:
    """Return a zip file with one fixed date."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def in_json_line(random: Random, data: bytes) -> bytes:
    """Damage a line of a store and give it the checksum that it should have."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    try:
        facts = json.loads(lines[at])
        if not isinstance(facts, dict):  # of a line that was damaged before
            return change_lines(random, data)
        facts.pop("crc32", None)
        body = json.dumps(change_value(random, facts)).encode()
    except (ValueError, RecursionError):
        return change_lines(random, data)
    lines[at] = body[:-1] + b', "crc32": "%08x"}' % zlib.crc32(body)
    return b"\n".join(lines)


# --- PBF: blobs of packed protocol buffers ------------------------------------------------


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def _fields(data: bytes) -> list[tuple[int, int, Any]]:
    """Return number, wire type and value of the fields of a message; ValueError if none."""
    at = 0
    found: list[tuple[int, int, Any]] = []

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise ValueError("cut")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, kind, number()))
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length = number()
        if length is None or at + length > len(data) or key >> 3 == 0:
            raise ValueError("no message")
        found.append((key >> 3, kind, data[at : at + length]))
        at += length
    return found


def _message(fields: list[tuple[int, int, Any]]) -> bytes:
    data = b""
    for number, kind, value in fields:
        data += varint(number << 3 | kind)
        if kind == 0:
            data += varint(value)
        else:
            data += (varint(len(value)) if kind == 2 else b"") + value
    return data


def change_message(random: Random, data: bytes, depth: int = 0) -> bytes:
    """Damage one field of a message or of one inside of it; all lengths stay right."""
    try:
        fields = _fields(data)
    except ValueError:
        fields = []
    if not fields:
        inner = (flip, put_bytes, cut, double, _change_packed)
        return random.choice(inner)(random, data)
    at = random.randrange(len(fields))
    number, kind, value = fields[at]
    what = random.random()
    if what < 0.08:
        del fields[at]
    elif what < 0.16:
        fields.insert(at, fields[at])
    elif kind == 0:
        odd = (0, 1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
        fields[at] = (number, kind, random.choice(odd))
    elif kind == 2:
        fields[at] = (number, kind, change_message(random, value, depth + 1))
    else:
        fields[at] = (number, kind, random.randbytes(len(value)))
    return _message(fields)


def _change_packed(random: Random, data: bytes) -> bytes:
    at = random.randint(0, len(data))
    odd = (2**31, 2**32, 2**62, 2**63 - 1, 2**64 - 1)
    return data[:at] + varint(random.choice(odd)) + data[at + random.randint(0, 1) :]


def in_pbf(random: Random, data: bytes) -> bytes:
    """Damage a block of an OpenStreetMap extract and pack it again."""
    blobs, plains, at = [], [], 0
    while at + 4 <= len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        try:
            header = _fields(data[at + 4 : at + 4 + size])
            length = next(
                value for number, kind, value in header if (number, kind) == (3, 0)
            )
            body = _fields(data[at + 4 + size : at + 4 + size + length])
            plains.append(next((zlib.decompress(x) for n, _, x in body if n == 3), None))
        except (ValueError, StopIteration, TypeError, zlib.error):
            return flip(random, data)
        blobs.append((header, body))
        at += 4 + size + length
    if not blobs:
        return flip(random, data)
    chosen = random.randrange(len(blobs))
    new = b""
    for index, (header, body) in enumerate(blobs):
        if index == chosen:
            plain = plains[index] or next((x for n, k, x in body if n == 1 and k == 2), b"")
            plain = change_message(random, plain)
            body = [(2, 0, len(plain)), (3, 2, zlib.compress(plain))]
        content = _message(body)
        header = [(n, k, len(content) if (n, k) == (3, 0) else x) for n, k, x in header]
        start = _message(header)
        new += struct.pack(">I", len(start)) + start + content
    return new
