"""Compiled kernels are cached, and never run when their source has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import mdpcloud
from mdpcloud.engine import jit

PACKAGE = Path(mdpcloud.__file__).parent

CALLED = """
from mdpcloud.engine.jit import kernel

@kernel()
def called(x):
    return {factor} * x
"""

CALLING = """
from mdpcloud.engine.jit import kernel
from mdpcloud.engine.called_kernels import called

@kernel()
def calling(x):
    return called(x)
"""


def write_package(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_the_hash_depends_on_every_kernel_file(tmp_path: Path) -> None:
    one = write_package(tmp_path, kernels="a", more_kernels="b", other="c")
    before = jit.source_hash.__wrapped__(one)
    write_package(tmp_path, other="changed")
    assert jit.source_hash.__wrapped__(one) == before
    write_package(tmp_path, more_kernels="changed")
    assert jit.source_hash.__wrapped__(one) != before


def test_the_hash_depends_on_the_version_of_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = jit.source_hash.__wrapped__(tmp_path)
    monkeypatch.setattr(numba, "__version__", "0.0")
    assert jit.source_hash.__wrapped__(tmp_path) != before


def test_the_cache_is_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDPCLOUD_CACHE", str(tmp_path / "chosen"))
    folder = jit.cache_folder.__wrapped__()
    assert folder.parent == tmp_path / "chosen"
    assert folder.name == f"kernels-{jit.source_hash()}"


def test_a_cache_that_cannot_be_written_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MDPCLOUD_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert jit.cache_folder.__wrapped__().parent == tmp_path / "user" / "mdpcloud"


def test_a_cache_with_compiled_kernels_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path)
    assert not jit.kernels_are_cached()
    (tmp_path / "kernels.sweep-1.py311.nbi").touch()
    assert jit.kernels_are_cached()


def test_decorating_leaves_the_settings_of_numba_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "somewhere else")
    jit.kernel()(lambda x: x)
    assert numba.config.CACHE_DIR == "somewhere else"


def test_a_failed_decoration_leaves_the_settings_of_numba_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**options: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(numba, "njit", refuse)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "somewhere else")
    with pytest.raises(RuntimeError):
        jit.kernel()(lambda x: x)
    assert numba.config.CACHE_DIR == "somewhere else"


@pytest.mark.slow
def test_an_edit_in_a_called_file_reaches_the_kernel_that_calls_it(tmp_path: Path) -> None:
    copy = tmp_path / "mdpcloud"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path),
        "MDPCLOUD_CACHE": str(tmp_path / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = "from mdpcloud.engine.calling_kernels import calling; print(calling(1))"
    write_package(copy / "engine", calling_kernels=CALLING)
    results = []
    for factor in (1, 2):
        write_package(copy / "engine", called_kernels=CALLED.format(factor=factor))
        run = subprocess.run(
            [sys.executable, "-c", command],
            env=environment,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        results.append(run.stdout.strip())
    assert results == ["1", "2"]
    assert len(list((tmp_path / "cache").iterdir())) == 2
