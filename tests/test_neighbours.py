"""Files of the user's own that import others run with those, or not at all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud import neighbours
from mdpcloud.errors import InputError
from mdpcloud.plugins import load
from mdpcloud.study.running.work import compute_packed, packed, work_of

RULES = "import beside\ndef rule(x):\n    return beside.CHOICE\n"
LATER = "def rule(x):\n    import beside\n    return beside.CHOICE\n"
DEEP = "import between_them\ndef rule(x):\n    return between_them.choice()\n"
BETWEEN = "import beside\ndef choice():\n    return beside.CHOICE\n"


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(neighbours, "_known", {})
    monkeypatch.setattr(neighbours, "_names", {})
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        if not name.startswith("mdpcloud."):
            del sys.modules[name]


def made(folder: Path, beside: str = "CHOICE = 0", rules: str = RULES) -> Path:
    """A folder with a rule and its neighbours."""
    folder.mkdir(exist_ok=True)
    (folder / "beside.py").write_text(beside)
    (folder / "between_them.py").write_text(BETWEEN)
    (folder / "rules.py").write_text(rules)
    return folder


def choice(folder: Path) -> Any:
    rule: Any = load("rules.py:rule", folder)
    return rule(None)


@pytest.mark.parametrize("first", [RULES, LATER])
@pytest.mark.parametrize("second", [RULES, LATER, "from beside import CHOICE\n" + LATER])
def test_neighbours_of_one_name_in_two_folders_are_refused(
    tmp_path: Path, first: str, second: str
) -> None:
    load("rules.py:rule", made(tmp_path / "a", rules=first))
    other = made(tmp_path / "b", "CHOICE = 1", second)
    with pytest.raises(InputError, match=r"b/beside\.py would be mixed up with .*a/beside\.py"):
        load("rules.py:rule", other)


def test_neighbours_of_neighbours_are_refused_too(tmp_path: Path) -> None:
    assert choice(made(tmp_path / "a")) == 0
    with pytest.raises(InputError, match=r"beside\.py would be mixed up"):
        choice(made(tmp_path / "b", "CHOICE = 1", DEEP))


def test_a_neighbour_that_another_folder_of_the_path_hides_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(made(tmp_path / "a"))
    with pytest.raises(InputError, match=r"beside\.py would be mixed up"):
        choice(made(tmp_path / "b", "CHOICE = 1"))


def test_neighbours_of_the_same_content_serve_both_unless_they_look_where_they_lie(
    tmp_path: Path,
) -> None:
    assert choice(made(tmp_path / "a")) == choice(made(tmp_path / "b")) == 0
    with pytest.raises(InputError, match="would be mixed up"):
        choice(made(tmp_path / "c", "CHOICE = 0  # another"))


def test_a_neighbour_that_looks_where_it_lies_serves_its_folder_only(tmp_path: Path) -> None:
    beside = "from pathlib import Path\nCHOICE = Path(__file__).parent.name\n"
    assert choice(made(tmp_path / "a", beside)) == "a"
    with pytest.raises(InputError, match="would be mixed up"):
        choice(made(tmp_path / "b", beside))


def test_a_neighbour_that_has_changed_since_it_was_loaded_is_refused(tmp_path: Path) -> None:
    assert choice(made(tmp_path / "a")) == 0
    with pytest.raises(InputError, match=r"beside\.py has changed since this process loaded it"):
        choice(made(tmp_path / "a", "CHOICE = 1", f"{RULES}# changed"))


def test_a_neighbour_may_be_mended_until_it_loads(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SyntaxError"):
        choice(made(tmp_path / "a", "CHOICE ="))
    assert choice(made(tmp_path / "a", "CHOICE = 1")) == 1


def test_names_of_installed_modules_and_of_files_that_are_not_imported_do_not_matter(
    tmp_path: Path,
) -> None:
    for folder, number in (("a", 0), ("b", 1)):
        place = made(tmp_path / folder, f"CHOICE = {number}", f"import json\nrule = {number}")
        (place / "json.py").write_text(f"CHOICE = {number}")
        assert load("rules.py:rule", place) == number


@pytest.mark.slow
def test_a_study_of_two_such_folders_tells_what_to_do(tmp_path: Path) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b", "CHOICE = 1")
    (tmp_path / "s.toml").write_text(
        'format = 1\npolicies = ["a/rules.py:rule", "b/rules.py:rule"]\n'
        '[base]\nsystem = "cloud_routing"\n[base.parameters]\narrival_rate = 3.0\n'
        "outside_cost = 0.3\n"
        "nodes = [{ servers = 1, service_rate = 2.0, abandonment_rate = 0.5 }]\n"
        '[[axes]]\npath = "load"\nvalues = [0.5]\n'
    )
    command = [sys.executable, "-m", "mdpcloud", "study", tmp_path / "s.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "would be mixed up" in done.stderr
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.slow
def test_what_a_file_gives_of_its_neighbours_is_found_in_other_processes(tmp_path: Path) -> None:
    """As the file has left them: with another number than they have on their own."""
    made(tmp_path, "CHOICE = 0\ndef rule(x):\n    return CHOICE\n")
    source = "import beside\nbeside.CHOICE = 1\nfrom beside import rule\n"
    (tmp_path / "gives.py").write_text(source)
    code = (
        "from pathlib import Path\nimport sys, mdpcloud as mc\nfrom mdpcloud.plugins import load\n"
        "node = mc.systems.Node(1, 2.0, 0.5)\n"
        "system = mc.systems.CloudRouting((node,), 3.0, outside_cost=0.3)\n"
        "rule = load('gives.py:rule', Path(sys.argv[1]))\n"
        "study = mc.study.Study.of([({}, system)], {'own': rule})\n"
        "for backend in ('loky', 'sequential'):\n"
        "    store = Path(sys.argv[1]) / backend\n"
        "    for row in mc.study.run(study, store=store, backend=backend).rows():\n"
        "        print(row['policy'], row['cost'], row['error'])\n"
    )
    command = [sys.executable, "-c", code, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == lines[2:]
    assert lines[1].startswith("own ")
    assert lines[1].endswith(" None")


def test_a_worker_that_has_loaded_a_neighbour_before_an_edit_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule: Any = load("rules.py:rule", made(tmp_path))
    node = mc.systems.Node(1, 2.0, 0.5)
    system = mc.systems.CloudRouting((node,), 3.0, outside_cost=0.3)
    (one,) = mc.study.Study.of([({}, system)], {"own": rule}).instances
    content = packed(work_of(one))
    assert isinstance(content, bytes)
    found = compute_packed(content)
    assert isinstance(found, dict)
    assert found["status"] == "done"
    before = tmp_path / "beside.py", b"CHOICE = 1"
    monkeypatch.setitem(neighbours._known, "beside", before)
    found = compute_packed(content)
    assert isinstance(found, str)
    assert "has loaded other versions of the user's files" in found
