"""The package travels to other processes with what names it."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from joblib.externals.loky import cloudpickle_wrapper

import mdpcloud as mc

PROGRAM = """
import sys
from dataclasses import dataclass
import mdpcloud as mc

@dataclass(frozen=True)
class Queue:
    rate: float = 0.5

    def model(self):
        join = mc.Action("join", mc.step(i={0: 1}), 0.0, lambda x: x.i[0] < 9)
        arrival = mc.Event("arrival", self.rate, [join, mc.Action("lose", cost=5.0)])
        service = mc.Event("service", lambda x: 1.0 * (x.i[0] > 0), mc.step(i={0: -1}))
        return mc.Model(mc.Lattice({"i": (9,)}), [arrival, service], cost_rate=lambda x: x.i[0])

def lose(x):
    assert mc.Model
    return "lose"

if __name__ == "__main__":
    study = mc.study.Study.of([({"rate": r}, Queue(r)) for r in (0.5, 0.9)], {"lose": lose})
    rows = mc.study.run(study, store=sys.argv[1], jobs=2, backend=sys.argv[2]).rows()
    print([row["error"] for row in rows], [row["cost"] for row in rows if row["policy"] == "lose"])
"""


@pytest.mark.parametrize("copied", [pickle, cloudpickle_wrapper], ids=["pickle", "cloudpickle"])
def test_the_package_is_pickled_by_its_name(copied) -> None:
    assert copied.loads(copied.dumps(mc)) is mc
    assert copy.deepcopy({"package": mc}) == {"package": mc}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_a_system_and_a_rule_of_a_program_that_name_the_package_are_studied(
    backend: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, program, tmp_path / "store", backend]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[None, None, None, None] [2.5, 4.5]"
