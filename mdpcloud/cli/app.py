"""The commands. Everything heavy is imported inside them, so that ``--help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import mdpcloud as mc
from mdpcloud.cli.border import exit_codes

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Compare rules of resource allocation with the certified optimum.",
    epilog=(
        "Exit codes: 0 done, 1 did not converge or was interrupted (what is known so far is "
        "printed), 2 bad input, 3 some instance of a study failed or did not converge, 130 "
        "interrupted before there was a result."
    ),
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file (TOML).")]
Tolerance = Annotated[
    float | None, typer.Option(help="Relative width of the certified bounds; overrides the file.")
]
Threads = Annotated[int | None, typer.Option(help="Number of threads; overrides the file.")]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", help="Write the results to this file.")
]
Plots = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Write the pictures into this folder, made if missing."),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Policy of the file; repeatable. By default all."),
]


def main() -> None:
    """Run the command line."""
    app()


def _whole(text: str) -> int:
    """A whole number, however it is written, such as 4000000 or 4e6."""
    try:
        value = float(text)
        if value.is_integer():
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text} is no whole number")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mdpcloud {mc.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    file: File,
    json: Json = None,
    plots: Plots = None,
    tolerance: Tolerance = None,
    threads: Threads = None,
) -> None:
    """Compare policies with the certified optimum: costs, gaps, index tables, pictures."""
    from mdpcloud.cli import work

    with exit_codes():
        work.compare(work.scenario_of(file, tolerance, threads), json, plots)


@app.command()
def evaluate(
    file: File,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Policy of the file; repeatable. By default an allocation system's own policy, "
            "beside its limit; of other systems all.",
        ),
    ] = None,
    json: Json = None,
    plots: Plots = None,
    tolerance: Tolerance = None,
) -> None:
    """Cost and measures of a system, without the optimum; beside its large-scale limit, if any."""
    from mdpcloud.cli import work

    with exit_codes():
        work.evaluate(work.scenario_of(file, tolerance, None), policy, json, plots)


@app.command()
def simulate(
    file: File,
    policy: Policies = None,
    json: Json = None,
    plots: Plots = None,
    events: Annotated[
        int | None, typer.Option(parser=_whole, help="Events of each policy; overrides the file.")
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(help="Half width of the 95 % interval to reach; overrides the file."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; overrides the file.")] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Replications at the same time; overrides the file.")
    ] = None,
) -> None:
    """Simulate policies with common random numbers: costs, differences, measures, intervals."""
    from mdpcloud.cli import simulate as work

    flags = {"events": events, "half_width": half_width, "seed": seed, "n_jobs": jobs}
    with exit_codes():
        work.simulate(work.scenario_of(file, flags), policy, json, plots)


@app.command()
def solve(
    file: File,
    save: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Save the solution (npz) for load_solution.")
    ] = None,
    json: Json = None,
    tolerance: Tolerance = None,
    threads: Threads = None,
) -> None:
    """The certified optimum alone, within the constraints that the file may set."""
    from mdpcloud.cli import work

    with exit_codes():
        work.solve(work.scenario_of(file, tolerance, threads), save, json)


@app.command()
def indices(
    file: File,
    format: Annotated[
        Literal["json", "csv", "lua", "c"], typer.Option("--format", help="Form of the tables.")
    ] = "json",
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Index policy of the system; repeatable. Default: all."),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Entries of a node that never refuses, whose last entry goes on. "
            "Default: its first states.",
        ),
    ] = None,
) -> None:
    """Index tables of the system, per policy and node, for deployment.

    JSON is what mdpcloud/runtime.py reads, lua is for HAProxy, c a header, csv for spreadsheets.
    """
    from mdpcloud.cli import indices as work
    from mdpcloud.scenario import read_scenario

    with exit_codes():
        typer.echo(work.indices(read_scenario(file), format, policy, states), nl=False)


@app.command()
def figure(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the files; 'figures' beside FILE by default."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """The figure that a scenario describes: PNG, PDF, and its numbers as JSON and CSV."""
    from mdpcloud.cli import figure as work

    with exit_codes():
        work.draw(file, out, json)


@app.command()
def study(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Study file (TOML).")],
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the records and results; FILE.results by default."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Instances at the same time. Default: the number of processors."),
    ] = None,
    backend: Annotated[
        Literal["loky", "dask"],
        typer.Option(help="Processes of this machine, or dask, on as many as it has."),
    ] = "loky",
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of a dask scheduler, such as tcp://host:8786."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the records that there are.")
    ] = False,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Keep records that other sources made.")
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Try again what failed or did not converge."),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Longest time of an instance: solvers stop then with their bounds, your own code "
            "after half as long again and a second.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the instances; compute nothing.")
    ] = False,
) -> None:
    """Run a task on many instances, one record each; tables and figures of the results."""
    from mdpcloud.cli import study as work

    with exit_codes():
        if dry_run:
            work.list_instances(file, store)
            return
        work.study(
            file,
            store,
            jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            resume=resume,
            keep_old=keep_old,
            retry_failed=retry_failed,
            time_limit=time_limit,
        )


@app.command()
def systems() -> None:
    """Systems that scenarios can name, one line each."""
    from mdpcloud.cli import work

    with exit_codes():
        typer.echo(work.systems(), nl=False)


@app.command()
def new(
    system: Annotated[
        str,
        typer.Argument(metavar="SYSTEM", help="Name of a system, or file.py:Class; or study."),
    ],
) -> None:
    """Print a commented scenario for a system, or a study of a scenario in my.toml."""
    from mdpcloud.cli import work

    with exit_codes():
        typer.echo(work.new(system), nl=False)
