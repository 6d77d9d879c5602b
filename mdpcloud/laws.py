"""Laws of durations: of service times and of patience."""
