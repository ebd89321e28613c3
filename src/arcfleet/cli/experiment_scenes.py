"""Later."""


def add_parsers(names):
    pass
