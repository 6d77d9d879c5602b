"""Tables on the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Table", "as_markdown", "show"]


@dataclass(frozen=True)
class Table:
    """A titled table with a note; the first two columns are text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def as_markdown(table: Table) -> str:
    """The table as a section of a Markdown file."""
    lines = [
        f"## {table.title}",
        "",
        *([table.note, ""] if table.note else []),
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * 2 + "---:|" * (len(table.columns) - 2),
        *("| " + " | ".join(row) + " |" for row in table.rows),
    ]
    return "\n".join(lines)


def show(table: Table) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table as RichTable

    drawn = RichTable(title=table.title, title_justify="left")
    for number, name in enumerate(table.columns):
        drawn.add_column(name, justify="left" if number < 2 else "right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    console = Console()
    console.width = max(console.width, 100)  # pipes are taken for 80 columns wide
    console.print(drawn)
    console.print(table.note, style="dim", highlight=False)
