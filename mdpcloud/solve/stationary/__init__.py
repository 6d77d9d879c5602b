"""Laws of chains in the long run."""
