"""Birth-death arms along their states."""
