"""What the numbers were measured on and with."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["describe_machine"]


def describe_machine() -> dict[str, str]:
    """Processor, memory, date and versions."""
    from mdpcloud import __version__

    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return {
        "Processor": f"{processor()}, {os.cpu_count()} cores",
        "Memory": f"{memory():.0f} GB",
        "System": f"{platform.system()} {platform.release().split('-')[0]}",
        "Date": datetime.date.today().isoformat(),
        "Versions": f"mdpcloud {__version__}, Python {platform.python_version()}, {packages}",
    }


def processor() -> str:
    """Model name, as the kernel reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory() -> float:
    """Installed memory, GB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
