"""Finite horizons: bounds of the optimal cost and of policies that change with time."""
