"""A table as text, GitHub's Markdown and LaTeX, all from the same cells.

Numbers of a column are aligned at their points. LaTeX needs the package booktabs; what is special
to a language is escaped in all cells, captions and notes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Grid", "latex", "markdown", "text"]

MOST_PLACES = 6  # in the notes of LaTeX; others are comments
WIDTH = 100  # characters of a line of a caption or note
NUMBER = re.compile(r"-?\d+(?:\.(?P<decimals>\d+))?")
POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)\b")
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    **{letter: f"\\{letter}" for letter in "_%&#${}"},
}
MARKDOWN = re.compile(r"([\\`*_<|$~\[\]])")


@dataclass(frozen=True)
class Grid:
    """Cells of a table with what stands above and below it.

    Attributes
    ----------
    name : str
        Its label in LaTeX is ``tab:NAME``.
    caption : str
    heading : tuple of str
    lines : tuple of tuple of str
    right : frozenset of str
        Headings of the columns that are set to the right, such as numbers.
    blocks : tuple of int
        Numbers of the lines at which a new part begins.
    notes : tuple of str
    places : tuple of str
        What the cells' numbers of instances stand for; comments in LaTeX beyond the first few.
    """

    name: str
    caption: str
    heading: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    right: frozenset[str] = frozenset()
    blocks: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def at_right(self) -> list[bool]:
        """Whether each column is set to the right."""
        return [name in self.right for name in self.heading]

    def headings(self) -> list[list[str]]:
        """The heading in two lines where that makes a column narrower."""
        columns = zip(*self.lines, strict=True)
        wide = [max(map(len, column)) for column in columns]
        pairs = [
            name.split(" ", 1) if " " in name and len(name) > width else ["", name]
            for name, width in zip(self.heading, wide, strict=True)
        ]
        upper, lower = ([pair[i] for pair in pairs] for i in range(2))
        return [upper, lower] if any(upper) else [lower]

    def aligned(self, pad: Callable[[str], str]) -> list[list[str]]:
        """Lines whose numbers are all as wide behind their points, filled by ``pad``."""
        columns = [
            _padded(column, pad) if right else column
            for column, right in zip(zip(*self.lines, strict=True), self.at_right(), strict=True)
        ]
        return [list(line) for line in zip(*columns, strict=True)]


def _padded(cells: Sequence[str], pad: Callable[[str], str]) -> list[str]:
    tails = [_tail(cell) for cell in cells]
    longest = max(tails, key=lambda tail: len(tail or ""), default="") or ""
    return [
        cell if tail is None or tail == longest else cell + pad(longest[len(tail) :])
        for cell, tail in zip(cells, tails, strict=True)
    ]


def _tail(cell: str) -> str | None:
    """The point and decimals of a number, as zeros; None of other text."""
    found = NUMBER.fullmatch(cell)
    if found is None:
        return None
    return "." + "0" * len(found["decimals"]) if found["decimals"] else ""


# --- text -----------------------------------------------------------------------------------------


def text(grid: Grid) -> str:
    """A table for a terminal: a caption, lines below a heading, notes."""
    parts = [_wrapped(grid.caption)]
    if grid.lines:
        parts.append("\n".join(_text_lines(grid)))
    below = [*(f"note: {note}" for note in grid.notes), *grid.places]
    parts += ["\n".join(_wrapped(one, "  ") for one in below)] if below else []
    return "\n\n".join(parts)


def _text_lines(grid: Grid) -> list[str]:
    headings = grid.headings()
    lines = [*headings, *grid.aligned(lambda tail: " " * len(tail))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    made = []
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, grid.at_right(), strict=True)
        ]
        first = number - len(headings)
        made += [rule] * (first == 0) + [""] * (first in grid.blocks)
        made.append("  ".join(cells).rstrip())
    return made


def _wrapped(sentence: str, indent: str = "") -> str:
    return textwrap.fill(
        sentence, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


# --- Markdown -------------------------------------------------------------------------------------


def markdown(grid: Grid) -> str:
    """A table for GitHub and notebooks."""
    parts = [f"**{_marked(grid.caption)}**"]
    if grid.lines:
        rules = ["---:" if right else "---" for right in grid.at_right()]
        cells = [map(_marked, line) for line in (grid.heading, *grid.lines)]
        lines = [f"| {' | '.join(line)} |" for line in cells]
        lines.insert(1, f"| {' | '.join(rules)} |")
        parts.append("\n".join(lines))
    below = [f"- {_marked(note)}" for note in (*grid.notes, *grid.places)]
    return "\n\n".join([*parts, "\n".join(below)]).rstrip() + "\n"


def _marked(sentence: str) -> str:
    r"""Text as it is in Markdown.

    Examples
    --------
    >>> print(_marked("a|b_c"))
    a\|b\_c
    """
    return MARKDOWN.sub(r"\\\1", " ".join(sentence.split()))


# --- LaTeX ----------------------------------------------------------------------------------------


def latex(grid: Grid) -> str:
    """A floating table with a caption and a label; it needs booktabs."""
    begin = [r"% \usepackage{booktabs}"] if grid.lines else []
    begin += [r"\begin{table}", r"\centering"]
    begin += [rf"\caption{{{_escaped(grid.caption)}}}", rf"\label{{tab:{_label(grid.name)}}}"]
    notes = [_escaped(_sentence(note)) for note in (*grid.notes, *grid.places[:MOST_PLACES])]
    end = [rf"\par\smallskip\begin{{minipage}}{{\linewidth}}\footnotesize {' '.join(notes)}"]
    end = [*end, r"\end{minipage}"] if notes else []
    comments = [f"% {' '.join(place.split())}" for place in grid.places[MOST_PLACES:]]
    return "\n".join([*begin, *_tabular(grid), *end, r"\end{table}", *comments]) + "\n"


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith(tuple('.?!')) else '.'}"


def _tabular(grid: Grid) -> list[str]:
    if not grid.lines:
        return []
    sides = "".join("r" if right else "l" for right in grid.at_right())
    lines = grid.aligned(lambda tail: f"\0{tail}\0")
    made = [r"\small", rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
    made += [*map(_latex_line, grid.headings()), r"\midrule"]
    for number, line in enumerate(lines):
        made += [r"\addlinespace"] * (number in grid.blocks)
        made.append(_latex_line(line))
    return [*made, r"\bottomrule", r"\end{tabular}"]


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_cell, cells)) + r" \\"


def _latex_cell(cell: str) -> str:
    shown, _, rest = cell.partition("\0")
    phantom = rf"\phantom{{{rest[:-1]}}}" if rest else ""
    minus = "$-$" if NUMBER.fullmatch(shown) and shown.startswith("-") else ""
    before = "{}" if shown.startswith(("[", "*")) else minus  # else of the end of the line above
    return before + _escaped(shown[bool(minus) :]) + phantom


def _escaped(sentence: str) -> str:
    r"""Text as it is in LaTeX.

    Examples
    --------
    >>> print(_escaped("100 % of a_b within 2e-9"))
    100 \% of a\_b within $2\cdot10^{-9}$
    """
    parts = POWER.split(" ".join(sentence.split()))
    made = ["".join(LATEX.get(letter, letter) for letter in part) for part in parts[::3]]
    powers = [
        rf"${digits}\cdot10^{{{int(power)}}}$"
        for digits, power in zip(parts[1::3], parts[2::3], strict=True)
    ]
    return "".join(a + b for a, b in zip(made, [*powers, ""], strict=True))


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.:-]+", "-", name)
