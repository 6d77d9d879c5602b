"""Laws of chains at given times, accumulated costs, and first passage."""
