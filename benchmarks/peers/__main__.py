"""The peers side by side: ``python -m benchmarks.peers`` writes a section of RESULTS.md."""

from benchmarks.peers.compare import main

if __name__ == "__main__":
    main()
