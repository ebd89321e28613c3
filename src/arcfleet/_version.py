"""The version, readable from every layer."""

__version__ = "0.2.0"
