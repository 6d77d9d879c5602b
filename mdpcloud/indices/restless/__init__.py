"""Restless arms: what they are, and their indices with a verdict."""
