"""Measurements of speed and quality; each file is a command of its own."""
