"""Installs the peers into an environment of their own: ``python -m benchmarks.peers.environment``.

They are the dependency group `peers` of pyproject.toml. Where they cannot be installed together
each is tried alone, and what is missing is shown as such in the tables.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv

from benchmarks.peers.running import PYTHON, ROOT

__all__ = ["main", "peers"]


def peers() -> list[str]:
    """The requirements of the group."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return list(groups["peers"])


def main() -> None:
    """Make the environment and fill it."""
    if not PYTHON.exists():
        venv.create(PYTHON.parents[1], with_pip=True)
    if install(peers()):
        return
    missing = [requirement for requirement in peers() if not install([requirement])]
    if missing:
        print(f"could not be installed: {', '.join(missing)}", file=sys.stderr)


def install(requirements: list[str]) -> bool:
    """Whether pip could install them."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *requirements], check=False).returncode == 0


if __name__ == "__main__":
    main()
