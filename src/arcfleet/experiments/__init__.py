"""Measuring methods over suites of instances."""
