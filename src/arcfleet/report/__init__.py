"""Showing it: text tables and static plots."""
