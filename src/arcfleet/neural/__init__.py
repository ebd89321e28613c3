"""Learned solvers: the only folder that imports torch (extra `neural`)."""
