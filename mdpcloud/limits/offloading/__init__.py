"""Limits of centres that offload: regimes, boundary value problem, ring, fluid path, bound."""
