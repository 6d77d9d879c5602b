"""The command ``figure``: what the table ``[figure]`` of a scenario describes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

import mdpcloud as mc
from mdpcloud.cli.border import say
from mdpcloud.cli.progress import bar, teller
from mdpcloud.cli.work import announce_compilation, check_place, mistakes_of, write
from mdpcloud.plots.style import plain
from mdpcloud.scenario import Scenario, read_scenario

__all__ = ["draw"]

Callback = Callable[[int, int, str], None]


def draw(file: Path, folder: Path | None, json_file: Path | None) -> None:
    """Compute the figure of a scenario and write it, by default into ``figures`` beside the file.

    Parameters
    ----------
    file : Path
    folder : Path, optional
    json_file : Path, optional
        A further place for its numbers.
    """
    from mdpcloud.asymptotics.evaluation import Effort
    from mdpcloud.asymptotics.figures import chart_of
    from mdpcloud.plots.files import write_figure

    scenario = read_scenario(file)
    if scenario.figure is None:
        raise mc.InputError(f"scenario {file} describes no figure: it has no table [figure]")
    check_place("--json", json_file)
    announce_compilation()
    with mistakes_of(scenario), figure_bar() as progress:
        effort = Effort(
            scenario.solve.tolerance, scenario.solve.threads, scenario.simulate, progress
        )
        chart = chart_of(scenario.system, scenario.figure, effort)
    heading = _heading(scenario)
    name = scenario.figure.title or plain(scenario.name)
    for path in write_figure(chart, folder or file.parent / "figures", file.stem, name, heading):
        say(f"figure: {path}")
    for note in chart.notes:
        say(f"note on {file.stem}: {in_plain_text(note)}")
    write({**heading, **chart.to_dict()}, json_file)


def in_plain_text(text: str) -> str:
    r"""A label without the marks of its formulas, for the terminal.

    Examples
    --------
    >>> in_plain_text(r"N = 5, $\lambda_1$ = 2")
    'N = 5, lambda_1 = 2'
    """
    return re.sub(r"\$([^$]*)\$", lambda found: re.sub(r"[\\{}]", "", found[1]), text)


def _heading(scenario: Scenario) -> dict[str, object]:
    assert scenario.figure is not None
    return {
        "format": 1,
        "system": scenario.system_name,
        "name": scenario.name,
        "figure": scenario.figure.kind,
        "parameters": scenario.parameters,
        "scenario_sha256": scenario.sha256,
    }


@contextmanager
def figure_bar(
    console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callback]:
    """Bar that a figure moves by ``progress(done, total, what)``, or lines if that is no terminal.

    Parameters
    ----------
    console : Console, optional
    clock : function, optional
        Seconds.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        tell = teller(lambda text: console.print(text, highlight=False), clock)
        yield lambda done, total, what: tell(lambda: f"{done} of {total}, {in_plain_text(what)}")
        return
    with bar(console) as (drawn, task):
        yield lambda done, total, what: drawn.update(
            task,
            completed=done,
            total=total,
            description=f"{done} of {total}: {in_plain_text(what)}",
        )
