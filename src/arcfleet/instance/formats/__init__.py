"""Instance file formats, one file each.

`carplib.py` and `mcarp.py` are tables of keys; `keyed_text.py`, `keyed_reader.py` and
`keyed_writer.py` read and write what such a table describes.
"""
