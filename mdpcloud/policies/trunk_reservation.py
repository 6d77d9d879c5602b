"""Trunk reservation: a job takes an option only if enough capacity stays free for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mdpcloud.policies.family import Condition, Family, Option, Parameter, Rules, Stream, first_fit

__all__ = ["trunk_reservation"]


def trunk_reservation(
    streams: Sequence[Stream],
    parameters: Sequence[Parameter],
    name: str = "trunk_reservation",
    *,
    unimodal: bool = False,
) -> Family:
    """Rules that take an option with ``spare`` only where that much capacity stays free.

    Parameters
    ----------
    streams : sequence of Stream
    parameters : sequence of Parameter
        One for each option with ``spare``, in the order of streams and options: the capacity that
        must stay free once the job is in.
    name : str
    unimodal : bool
        See `Family`.

    Examples
    --------
    >>> import numpy as np
    >>> option = Option("accept", lambda free: free >= 1, spare=lambda free: free - 1)
    >>> arrival = Stream("arrival", (option,))
    >>> family = trunk_reservation([arrival], [Parameter("reserved", (0, 1, 2))])
    >>> [str(action) for action in family.member(1)["arrival"](np.arange(4))]
    ['reject', 'reject', 'accept', 'accept']
    """

    def member(*reserved: float) -> Rules:
        levels = iter(reserved)
        return {
            stream.decision: first_fit(
                [(option.action, _guarded(option, levels)) for option in stream.options],
                stream.otherwise,
            )
            for stream in streams
        }

    return Family(name, tuple(parameters), member, unimodal)


def _guarded(option: Option, levels: Iterator[float]) -> Condition:
    spare, fits = option.spare, option.fits
    if spare is None:
        return fits
    level = next(levels)
    return lambda x: fits(x) & (spare(x) >= level)
