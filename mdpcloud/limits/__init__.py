"""Large-scale limits of allocation systems: fluid trajectories, random walks, fixed points."""
