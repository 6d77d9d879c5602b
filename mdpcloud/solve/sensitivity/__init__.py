"""Derivatives of the optimal average cost."""
