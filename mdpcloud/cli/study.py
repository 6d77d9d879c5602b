"""The command ``study``: run or list the instances of a study file, write its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from mdpcloud.cli.border import INTERRUPTED, say
from mdpcloud.cli.study_progress import study_bar
from mdpcloud.cli.tables import print_table
from mdpcloud.cli.work import announce_compilation
from mdpcloud.study import Results, Study, load, read_study, run, store_of
from mdpcloud.study.records.garbage import no_collections
from mdpcloud.study.records.record import DONE, sayable
from mdpcloud.study.reports.tables import write_tables

__all__ = ["UNFINISHED", "list_instances", "study"]

UNFINISHED = 3  # exit code where an instance failed or did not converge
MOST_PROBLEMS = 20  # lines on instances that are not done
KEY = 12  # digits of a key that are shown


def study(file: Path, store: Path | None, **options: Any) -> None:
    """Run a study, print its tables, write its results.

    Parameters
    ----------
    file : Path
    store : Path, optional
        Folder of the records and results; beside the file by default.
    **options
        As `mdpcloud.study.run` takes them.
    """
    with no_collections():
        found = read_study(file)
    folder = store or store_of(found)
    announce_compilation()
    try:
        with study_bar() as progress:
            results = run(found, store=folder, progress=progress, say=say, **options)
    except KeyboardInterrupt:
        say(_interrupted(load(found, folder), file, store))
        raise typer.Exit(INTERRUPTED) from None
    with no_collections():
        _show(results, folder)
    counts = results.counts()
    if counts[DONE] < len(found.instances):
        raise typer.Exit(UNFINISHED)


def _show(results: Results, folder: Path) -> None:
    written = [*results.write(folder), *write_tables(results, folder)]
    for path in written:
        if path.suffix == ".txt":
            typer.echo(path.read_text(encoding="utf-8"))
    typer.echo(_counted(results))
    for line in _problems(results):
        say(line)
    for path in (*written, *_draw(results, folder)):
        say(f"written: {path}")


def _draw(results: Results, folder: Path) -> list[Path]:
    """Files of the figures; what draws takes long to load."""
    if not results.study.outputs.figures:
        return []
    from mdpcloud.study.reports.figures import draw

    return draw(results, folder, say)


def _counted(results: Results) -> str:
    counts = {name.replace("_", " "): count for name, count in results.counts().items() if count}
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{results.study.name}: {len(results.study.instances)} instances, {told}"


def _problems(results: Results) -> Iterator[str]:
    """A line on each of the first instances that are not done."""
    wrong = [
        (one, results.records[one.key])
        for one in results.study.instances
        if one.key in results.records and results.records[one.key]["status"] != DONE
    ]
    for one, record in wrong[:MOST_PROBLEMS]:
        status = record["status"].replace("_", " ")
        yield f"{status}: instance {one.number} ({one}): {sayable(record['error'])}"
    if len(wrong) > MOST_PROBLEMS:
        yield f"and {len(wrong) - MOST_PROBLEMS} more, which results.csv names"


def _interrupted(results: Results, file: Path, store: Path | None) -> str:
    total = len(results.study.instances)
    kept = total - results.counts()["missing"]
    place = "" if store is None else f" --store {store}"
    return f"interrupted: {kept} of {total} kept; go on with: mdpcloud study {file}{place} --resume"


def list_instances(file: Path, store: Path | None) -> None:
    """Print a line per instance: its number, labels, key, and whether there is a record of it."""
    found = read_study(file)
    folder = store or store_of(found)
    results = load(found, folder) if folder.exists() else Results(found, {})
    lines: list[Sequence[str]] = [("instance", *found.labels, "key", "record")]
    for one in found.instances:
        shown = [_label(one.labels.get(name, "")) for name in found.labels]
        record = results.records.get(one.key)
        status = "-" if record is None else record["status"].replace("_", " ")
        lines.append((str(one.number), *shown, one.key[:KEY], status))
    print_table(lines, right={"instance", *_numeric(found)})
    typer.echo(_counted(results))


def _label(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _numeric(found: Study) -> set[str]:
    """Labels whose values are numbers."""
    return {
        name
        for name in found.labels
        if all(isinstance(one.labels.get(name, 0), (int, float)) for one in found.instances)
    }
