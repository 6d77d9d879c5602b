"""Limits of trunk reservation between two centres: regimes, walk, all thresholds."""
