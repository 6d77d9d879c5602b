"""Side-by-side measurements; ``python -m benchmarks`` prints the tables and writes RESULTS.md."""
