"""Many arms and a budget of work: bounds, and exact costs of small fleets."""
