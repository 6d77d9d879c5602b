"""The package as it is installed: its names, how fast it loads, its wheel."""

import ast
import subprocess
import sys
from pathlib import Path

import mdpcloud as mc

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "mdpcloud"


def python(code: str) -> str:
    """Output of a fresh interpreter running the code."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_import_loads_nothing_but_numpy_of_the_dependencies() -> None:
    heavy = ["scipy", "numba", "cvxpy", "networkx", "joblib", "pydantic", "typer", "matplotlib"]
    loaded = python(f"import mdpcloud, sys; print([m for m in {heavy} if m in sys.modules])")
    assert loaded == "[]"


def test_a_submodule_does_not_hide_the_function_of_its_name() -> None:
    code = "import mdpcloud as mc, mdpcloud.solve; print('solve' in vars(mc))"
    assert python(code) == "False"


def test_every_public_name_is_listed_once_and_in_order() -> None:
    assert sorted(mc.__all__) == sorted({*mc.__all__})
    assert set(mc.__all__) <= set(dir(mc))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(mc, "no_such_name")


def test_the_public_api_has_one_source_of_its_version() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assigned = [
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == mc.__version__
    ]
    assert len(assigned) == 1
    assert mc.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
