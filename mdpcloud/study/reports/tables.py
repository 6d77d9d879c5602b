"""Tables of a study: how each policy does over the instances, for people and for papers.

A line tells of how many instances it is made, on how many of them its policy wins, the median, the
95th percentile and the worst value, and where that is (`mdpcloud.study.reports.statistics`). Every
digit follows from the bounds of what it is made of, and notes tell how exact that is and what was
left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError
from mdpcloud.numbers import agreed, interval, with_half_width
from mdpcloud.study.outputs import Table
from mdpcloud.study.records.garbage import no_collections
from mdpcloud.study.records.record import DONE
from mdpcloud.study.records.temporary import replace_file
from mdpcloud.study.reports import markup
from mdpcloud.study.reports.exactness import OPTIMUM, SIMULATED
from mdpcloud.study.reports.selection import Selected, select
from mdpcloud.study.reports.statistics import Bounded, Statistics, statistics_of
from mdpcloud.study.reports.words import FRACTIONS, label_text, notes_of, title_of

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Results

__all__ = ["Summary", "summary", "write_tables"]

FOLDER = "tables"
PERCENT = 100
DECIMALS = (2, 4)  # least and most of a share in per cent
SIGNIFICANT = 5  # digits of the largest of other numbers
SMALL = 1e-4  # below it numbers are told with their power of ten
SHARP = 1e-4  # relative width of bounds up to which simulated numbers are told like others
LONGEST = 40  # characters of the labels of an instance in a cell
LANGUAGES = {"txt": "text", "md": "markdown", "tex": "latex"}


@dataclass(frozen=True)
class Summary:
    """A table of a study.

    Attributes
    ----------
    table : Table
    statistics : tuple of Statistics
        Its lines; none where there is nothing to summarise, and a note says why.
    grid : Grid
        Its cells, caption and notes.
    """

    table: Table
    statistics: tuple[Statistics, ...]
    grid: markup.Grid

    def text(self) -> str:
        """As lines for a terminal."""
        return markup.text(self.grid)

    def markdown(self) -> str:
        """As GitHub's Markdown."""
        return markup.markdown(self.grid)

    def latex(self) -> str:
        """As a floating table for LaTeX with booktabs; its label is ``tab:NAME``."""
        return markup.latex(self.grid)


@no_collections()
def summary(results: Results, table: Table | None = None) -> Summary:
    """How the lines of a table do over the instances of a study.

    Parameters
    ----------
    results : Results
    table : Table, optional
        By default the gaps of the policies.

    Raises
    ------
    InputError
        When a column is not there or holds no numbers, or no row is as ``where`` wants it.
    """
    wanted = table or Table()
    done = results.counts()[DONE]
    if not done or (wanted == Table() and wanted.value not in results.columns):
        note = f"nothing to summarise: {_why_nothing(results, wanted)}"
        return Summary(wanted, (), markup.Grid(wanted.name, title_of(wanted, 0), notes=(note,)))
    selected = select(results.rows(), results.study.labels, wanted)
    lines = _lines(selected)
    return Summary(wanted, tuple(lines), _grid(results, selected, lines))


def write_tables(results: Results, folder: str | Path) -> list[Path]:
    """Write every table of a study into a folder ``tables``, as text, Markdown and LaTeX; paths.

    Raises
    ------
    InputError
        As `summary`, when all that can be made is written.
    OSError
        When a file cannot be written; one that is there stays as it was.
    """
    paths: list[Path] = []
    mistakes: list[str] = []
    for table in results.study.outputs.tables:
        try:
            paths += _write(summary(results, table), Path(folder) / FOLDER)
        except InputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InputError("\n".join(mistakes))
    return paths


def _write(made: Summary, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [
        replace_file(folder / f"{made.table.name}.{ending}", _file(getattr(made, language)()))
        for ending, language in LANGUAGES.items()
    ]


def _file(text: str) -> bytes:
    return f"{text.rstrip()}\n".encode()


def _why_nothing(results: Results, table: Table) -> str:
    if not results.counts()[DONE]:
        errors = [row["error"] for row in results.rows()]
        return f"no instance is done{f'; the first error is: {errors[0]}' if errors else ''}"
    return f"the task {results.study.task.name!r} gives no {table.value}"


# --- lines ----------------------------------------------------------------------------------------


def _lines(selected: Selected) -> list[Statistics]:
    sign = 1 if selected.table.better == "smaller" else -1
    outside = (OPTIMUM,) if selected.table.rows == "policy" else ()
    found = []
    for split, entries in selected.entries.items():
        found += statistics_of(entries, split, sign, outside, selected.others.get(split, ()))
    return found


def _places(results: Results, selected: Selected, lines: Sequence[Statistics]) -> dict[int, str]:
    """Number of each instance that is the worst of a line, to the labels that tell where it is."""
    labels = {one.number: one.labels for one in results.study.instances}
    here = [labels[number] for number in sorted(selected.instances)]
    known = {selected.table.rows, *selected.table.by}
    telling = [
        name
        for name in results.study.labels
        if name not in known and len({one.get(name) for one in here}) > 1
    ]
    return {
        number: ", ".join(
            f"{name} {label_text(labels[number][name])}"
            for name in telling
            if name in labels[number]
        )
        for number in sorted({line.worst_in for line in lines if line.worst_in is not None})
    }


# --- cells ----------------------------------------------------------------------------------------


def _grid(results: Results, selected: Selected, lines: Sequence[Statistics]) -> markup.Grid:
    table = selected.table
    wins = any(line.wins is not None for line in lines)
    places = _places(results, selected, lines)
    long = any(len(text) > LONGEST for text in places.values())
    shown = {n: str(n) if long or not text else f"{n}: {text}" for n, text in places.items()}
    numeric = all(isinstance(line.of, int | float) for line in lines)
    first = tuple(name.replace("_", " ") for name in (*table.by, table.rows))
    middle = ("instances", *["wins"] * wins, *_headings(table))
    return markup.Grid(
        table.name,
        title_of(table, len(selected.instances)),
        (*first, *middle, "worst instance"),
        tuple(_line_cells(selected, lines, wins, shown)),
        frozenset(middle) | ({first[-1]} if numeric else set()),
        tuple(i for i in range(1, len(lines)) if lines[i].split != lines[i - 1].split),
        tuple(notes_of(selected, results, wins)),
        tuple(f"instance {number}: {text}" for number, text in places.items() if long and text),
    )


def _headings(table: Table) -> list[str]:
    unit = " (%)" if table.value in FRACTIONS else ""
    percentile = "95th percentile" if table.better == "smaller" else "5th percentile"
    return [f"{name}{unit}" for name in ("median", percentile, "worst")]


def _line_cells(
    selected: Selected, lines: Sequence[Statistics], wins: bool, places: Mapping[int, str]
) -> Iterator[tuple[str, ...]]:
    """Cells of each line; what it has in common with the one above is told once."""
    names = _names(lines)
    before: tuple[Any, ...] = ()
    for line, shown in zip(lines, _cells(selected, lines), strict=True):
        split = [
            "" if line.split[: i + 1] == before[: i + 1] else label_text(value)
            for i, value in enumerate(line.split)
        ]
        won = ["" if line.wins is None else str(line.wins)] * wins
        place = "" if line.worst_in is None else places[line.worst_in]
        before = line.split
        yield (*split, names[line.of], str(line.instances), *won, *shown, place)


def _names(lines: Sequence[Statistics]) -> dict[Any, str]:
    """Names of lines for people, as they are spelt where these would be the same."""
    values = list(dict.fromkeys(line.of for line in lines))
    names = {value: label_text(value) for value in values}
    shown = list(names.values())
    return {v: name if shown.count(name) == 1 else str(v) for v, name in names.items()}


def _cells(selected: Selected, lines: Sequence[Statistics]) -> list[tuple[str, str, str]]:
    numbers = [number for line in lines for number in (line.median, line.high, line.worst)]
    decimals: int | None
    if selected.table.value in FRACTIONS:
        decimals = _decimals_of_shares([abs(line.worst.value) for line in lines])
    elif selected.whole:
        decimals = 0 if all(number.value.is_integer() for number in numbers) else DECIMALS[0]
    else:
        ends = [abs(end) for number in numbers for end in number if math.isfinite(end)]
        decimals = _decimals(max(ends, default=0.0))
    scale = PERCENT if selected.table.value in FRACTIONS else 1
    cell = _simulated_cell if SIMULATED in selected.kinds else _cell
    cells = [cell(number, decimals, scale) for number in numbers]
    return list(zip(cells[::3], cells[1::3], cells[2::3], strict=True))


def _cell(number: Bounded, decimals: int | None, scale: int) -> str:
    if not math.isfinite(number.upper - number.lower):
        return "unknown"
    if number.lower == number.upper == 0.0:
        return "0"
    if decimals is None:
        return _with_power(number)
    return agreed(number.lower, number.upper, decimals, scale)


def _simulated_cell(number: Bounded, decimals: int | None, scale: int) -> str:
    """A number with half of its interval; of simulated ones few digits are certain."""
    value, lower, upper = (scale * end for end in number)
    if not upper - lower > SHARP * abs(value) or not math.isfinite(upper - lower):
        return _cell(number, decimals, scale)
    return " ".join(with_half_width(value, lower, upper))


def _with_power(number: Bounded) -> str:
    """A small number with its power of ten, and the digits that both bounds have."""
    for digits in range(SIGNIFICANT - 1, -1, -1):
        low, high = (f"{end:.{digits}e}" for end in (number.lower, number.upper))
        if low == high:
            return low
    return interval(number.lower, number.upper)


def _decimals_of_shares(sizes: Sequence[float]) -> int:
    """Decimals in per cent that show two digits of the smallest that is not next to nothing."""
    least, most = DECIMALS
    told = [PERCENT * size for size in sizes if PERCENT * size >= 10.0**-most]
    return min(max(1 - math.floor(math.log10(min(told))), least), most) if told else least


def _decimals(size: float) -> int | None:
    """Decimals that show the significant digits of the largest; None where it is too small."""
    if 0 < size < SMALL:
        return None
    return max(SIGNIFICANT - 1 - math.floor(math.log10(size)), 0) if size else DECIMALS[0]
