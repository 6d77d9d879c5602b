"""The command line: each command reads a scenario, calls one function of the package and prints."""

from mdpcloud.cli.app import app, main

__all__ = ["app", "main"]
