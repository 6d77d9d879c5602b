"""Infinite models on growing boxes."""
