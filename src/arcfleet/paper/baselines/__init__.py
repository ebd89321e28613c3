"""The learned baselines of the paper: S2V-DQN and VRP-DL."""
