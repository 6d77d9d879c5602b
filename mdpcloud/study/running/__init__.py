"""Running a study: engines, works, limits, what is resumed."""
