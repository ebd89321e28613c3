"""The learned solvers that the paper compares DaAM with, as it adapts them."""
