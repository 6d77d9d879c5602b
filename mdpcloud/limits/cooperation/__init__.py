"""Limits of two centres with two resources: fixed point, walk, fluid path, bound."""
