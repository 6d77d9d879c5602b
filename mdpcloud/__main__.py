"""``python -m mdpcloud`` is the command line."""

from mdpcloud.cli import main

if __name__ == "__main__":
    main()
