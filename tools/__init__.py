"""Programs for those who work on arcfleet itself."""
