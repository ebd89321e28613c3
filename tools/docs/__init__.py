"""Pages of the site that are generated, and checks of those that are written by hand."""
