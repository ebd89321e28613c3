"""Training of the learned solver."""
