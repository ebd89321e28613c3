"""Suites of instances, JSON lines of runs, tables and anytime curves."""
