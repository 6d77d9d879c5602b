"""Exceptions raised by mdpcloud; every one of them is an `MdpcloudError`."""

from __future__ import annotations

__all__ = [
    "InputError",
    "MdpcloudError",
    "MultichainError",
    "NoIndexError",
    "NoLimitError",
    "SolveError",
]


class MdpcloudError(Exception):
    """Base class of the package's exceptions."""


class InputError(MdpcloudError, ValueError):
    """A value given by the user is wrong; the message says what, where and what is allowed."""


class SolveError(MdpcloudError):
    """A solver stopped before its tolerance was met.

    Attributes
    ----------
    partial : object or None
        The result so far (for example a `Solution` with its certified bounds), if there is one.
    """

    def __init__(self, message: str, partial: object = None) -> None:
        super().__init__(message)
        self.partial = partial


class MultichainError(MdpcloudError):
    """The quantity asked for depends on the initial state; the message names the classes."""


class NoIndexError(MdpcloudError):
    """An arm has no index; the message gives the verdict and its reason."""


class NoLimitError(MdpcloudError):
    """There is no large-scale limit, or none is known; the message names the violated condition."""
