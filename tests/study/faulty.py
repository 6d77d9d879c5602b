"""Studies whose instances do what `tests.study.faulty_rules` offers.

``python -m tests.study.faulty STORE JOBS RESUME FOLDER ...`` runs one, for tests that kill it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mdpcloud.plugins import load
from mdpcloud.study.running.run import run
from mdpcloud.study.study import Study

RULES = Path(__file__).with_name("faulty_rules.py")
TASK = f"{RULES}:task"
Spot: Any = load(f"{RULES}:Spot", Path())
tries: Any = load(f"{RULES}:tries", Path())


def study_of(does: Iterable[str], folder: Path | str = "", task: str = TASK) -> Study:
    """A study whose instances do the given things."""
    return Study.of(
        (({"number": k}, Spot(k, what, str(folder))) for k, what in enumerate(does)), task=task
    )


def main(store: str, jobs: str, resume: str, folder: str, *does: str) -> None:
    """Run a study, print a line at the start and after each record."""
    try:
        results = run(
            study_of(does, folder),
            store=store,
            jobs=int(jobs),
            resume=resume == "resume",
            progress=lambda *counts: print(*counts, flush=True),
        )
    except KeyboardInterrupt as error:
        print("interrupted", error, flush=True)
        sys.exit(130)
    except OSError as error:
        print("error", error, flush=True)
        sys.exit(2)
    print(results.counts(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
