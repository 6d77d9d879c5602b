"""Settings that every test shares."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("ci")

REFERENCE = Path(__file__).parent / "reference"


@cache
def _read(name: str) -> Any:
    return json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def routing_reference() -> Any:
    """Content of ``tests/reference/routing.json``."""
    return _read("routing")
