"""Files that may be packed by gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import zlib
from typing import TYPE_CHECKING

from arcfleet.errors import FileError
from arcfleet.instance.plain_text import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_GZIP_MAGIC = b"\x1f\x8b"
_BZIP2_MAGIC = b"BZh"


def read_unpacked(path: Path | str) -> bytes:
    """Return the file's bytes, unpacked where its first bytes say that it is packed."""
    data = read_bytes(path)
    try:
        if data.startswith(_GZIP_MAGIC):
            return gzip.decompress(data)
        if data.startswith(_BZIP2_MAGIC):
            return bz2.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise FileError(
            path,
            f"expected a whole packed file, found a cut or broken one ({error}); "
            "fetch it again",
        ) from error
    return data
