"""Constrained problems: the linear program of occupation measures, and what certifies it."""
