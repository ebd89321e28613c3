"""Mutation testing: which small faults in the code the tests notice."""
