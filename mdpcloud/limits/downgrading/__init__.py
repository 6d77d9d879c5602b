"""Limits of a link with downgrading: equilibrium, walk at the threshold, fluid path, bound."""
