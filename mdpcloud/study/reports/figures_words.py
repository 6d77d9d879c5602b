"""The words of a figure: titles, labels, names of curves, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from mdpcloud.plots.style import plain
from mdpcloud.study.reports.words import FRACTIONS, label_text

__all__ = ["column_words", "curve_words", "panel_title", "some", "value_words"]

WORDS = {
    "gap": "cost above the optimum",
    "profit_gap": "profit below the optimum",
    "absolute_gap": "cost above the optimum",
    "difference": "cost above the best policy",
    "cost": "long-run cost",
}
LINE = 26  # letters in a line of a legend
MOST_NAMED = 4  # places in a note


def value_words(value: Any) -> str:
    """A value of a column for people."""
    return plain(label_text(value))


def panel_title(names: Sequence[str], values: Sequence[Any]) -> str:
    """What the instances of a panel have in common.

    Examples
    --------
    >>> panel_title(["deadline", "servers"], ["end_service", 3])
    'end service, servers = 3'
    """
    return ", ".join(
        value_words(value) if isinstance(value, str) else f"{plain(name)} = {value_words(value)}"
        for name, value in zip(names, values, strict=True)
    )


def curve_words(column: str, value: Any) -> str:
    """A curve's name in the legend."""
    if not isinstance(value, str):
        return panel_title([column], [value])
    return plain(textwrap.fill(label_text(value), LINE))


def column_words(column: str) -> str:
    """A column's name on an axis.

    Examples
    --------
    >>> column_words("gap"), column_words("outside_cost")
    ('cost above the optimum (%)', 'outside cost')
    """
    words = WORDS.get(column, plain(column.replace("_", " ")))
    return f"{words} (%)" if column in FRACTIONS else words


def some(places: Iterable[str]) -> str:
    """Some places, and how many more.

    Examples
    --------
    >>> some(["1", "2"]), some("abcdef")
    ('1, 2', 'a, b, c, d and 2 more')
    """
    every = [*dict.fromkeys(places)]
    more = f" and {len(every) - MOST_NAMED} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more
