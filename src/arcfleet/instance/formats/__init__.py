"""Instance file formats: one file each, and one line here."""

from __future__ import annotations

from arcfleet.instance.formats.carplib import ENGLISH, SPANISH
from arcfleet.instance.formats.format import Format
from arcfleet.instance.formats.json_format import JSON
from arcfleet.instance.formats.keyed_text import keyed_formats
from arcfleet.instance.formats.mcarp import MCARP, MCARPTIF

__all__ = ["FORMATS", "Format"]

#: Every format, by name. Reading takes the first that recognises the text.
FORMATS: dict[str, Format] = {
    entry.name: entry for entry in (JSON, *keyed_formats(SPANISH, ENGLISH, MCARP, MCARPTIF))
}
