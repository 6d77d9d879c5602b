"""Total cost to absorption: policy iteration over proper policies, and proved bounds."""
