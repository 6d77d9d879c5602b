"""One section of a Markdown file, replaced without touching the rest."""

from __future__ import annotations

__all__ = ["replace_section", "section"]


def replace_section(text: str, title: str, body: str) -> str:
    """Put body under the heading ``## title``, in its place or at the end.

    A section ends before the next heading of level 1 or 2.
    """
    heading = f"## {title}"
    before, _, after = split(text, heading)
    parts = [before.rstrip("\n"), f"{heading}\n\n{body.strip()}", after.strip("\n")]
    return "\n\n".join(part for part in parts if part) + "\n"


def section(text: str, title: str) -> str | None:
    """What stands under the heading ``## title``; None if there is no such heading."""
    heading = f"## {title}"
    if heading not in text.splitlines():
        return None
    return split(text, heading)[1].strip()


def split(text: str, heading: str) -> tuple[str, str, str]:
    """What stands before the heading, under it, and after its section."""
    lines = text.splitlines()
    if heading not in lines:
        return text, "", ""
    start = lines.index(heading)
    end = next(
        (k for k in range(start + 1, len(lines)) if lines[k].startswith(("# ", "## "))),
        len(lines),
    )
    return "\n".join(lines[:start]), "\n".join(lines[start + 1 : end]), "\n".join(lines[end:])
