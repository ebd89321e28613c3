"""The paper, reproduced: its model, recipe, baselines, tables and figures."""
