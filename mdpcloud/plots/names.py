"""Names for people, as pictures and tables show them."""

from __future__ import annotations

import textwrap

__all__ = ["plain", "pretty"]

PEOPLE = {"bernoulli", "erlang", "whittle"}


def pretty(name: str, width: int = 26) -> str:
    """A policy's name for people, in lines of at most ``width`` characters.

    Examples
    --------
    >>> pretty("policy_improvement"), pretty("my_rules.py:join_fastest"), pretty("bernoulli_split")
    ('policy improvement', 'join fastest', 'Bernoulli split')
    """
    words = name.rsplit(":", 1)[-1].replace("_", " ").split()
    return textwrap.fill(" ".join(w.title() if w in PEOPLE else w for w in words), width)


def plain(text: str) -> str:
    """Text in which a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")
