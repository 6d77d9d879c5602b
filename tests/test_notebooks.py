"""The notebooks run, and both files of each pair say the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
each = pytest.mark.parametrize(
    "script", sorted(NOTEBOOKS.glob("*.py")), ids=lambda script: str(script.stem)
)


def cells(notebook: Any) -> list[tuple[str, str]]:
    """Kind and text of the cells."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


@each
def test_a_notebook_says_what_its_script_says(script: Path) -> None:
    """``jupytext --sync notebooks/*.py`` brings them together again."""
    assert cells(read(script.with_suffix(".ipynb"))) == cells(jupytext.read(script))


@each
def test_a_notebook_is_valid_and_stored_without_outputs(script: Path) -> None:
    notebook = read(script.with_suffix(".ipynb"))
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Any]:
    """Executes a notebook, once."""

    @cache
    def execute(script: Path) -> Any:
        notebook = jupytext.read(script)
        settings = {"metadata": {"path": str(tmp_path_factory.mktemp(script.stem))}}
        client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources=settings)
        with warnings.catch_warnings():  # of the kernel's own machinery
            warnings.simplefilter("default")
            client.execute()
        return notebook

    return execute


def outputs(notebook: Any) -> list[Any]:
    return [out for cell in notebook.cells for out in cell.get("outputs", [])]


@pytest.mark.slow
@each
def test_a_notebook_runs_and_shows_pictures(script: Path, run: Callable[[Path], Any]) -> None:
    shown = outputs(run(script))
    assert not [out for out in shown if out.get("name") == "stderr"]
    assert any("image/png" in out.get("data", {}) for out in shown)


@pytest.mark.slow
def test_the_quickstart_finds_what_it_says(run: Callable[[Path], Any]) -> None:
    shown = outputs(run(NOTEBOOKS / "quickstart.py"))
    text = "".join(out.text for out in shown if out.output_type == "stream")
    assert "optimum                  1.409612" in text
    for decision in ("gold     ", "standard "):
        assert f"{decision} the same action in 189 of 189 states" in text
