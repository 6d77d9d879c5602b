"""Complete sharing: whatever fits is taken, the first option first."""

from __future__ import annotations

from collections.abc import Sequence

from mdpcloud.policies.family import Family, Rules, Stream, first_fit

__all__ = ["complete_sharing"]


def complete_sharing(streams: Sequence[Stream], name: str = "complete_sharing") -> Family:
    """The family of one rule that holds nothing back.

    Examples
    --------
    >>> from mdpcloud.policies.family import Option
    >>> stream = Stream("arrival", (Option("accept", lambda free: free > 0),))
    >>> rules = complete_sharing([stream]).member()
    >>> str(rules["arrival"](0)), str(rules["arrival"](1))
    ('reject', 'accept')
    """

    def member() -> Rules:
        return {
            stream.decision: first_fit(
                [(option.action, option.fits) for option in stream.options], stream.otherwise
            )
            for stream in streams
        }

    return Family(name, (), member)
