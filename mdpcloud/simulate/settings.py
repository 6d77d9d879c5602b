"""How policies are simulated, as scenarios and comparisons take it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean

__all__ = ["SimulateSettings"]


@dataclass(frozen=True)
class SimulateSettings:
    """How policies are simulated: the table ``[simulate]`` of a scenario.

    Parameters
    ----------
    events : int, optional
        Events of each policy, in all replications together; with ``half_width``, at most.
    time : float, optional
        Simulated time of each replication, instead of ``events``.
    half_width : float, optional
        Half of the width of the 95 % interval of the cost at which to stop.
    warm_up : "mser" or float
        Time left out at the beginning of each replication; "mser" finds it by MSER-5.
    replications : int
        Independent runs, from whose differences the intervals are made.
    seed : int
        Equal seeds give equal results.
    n_jobs : int
        Replications that run at the same time.
    time_limit : float, optional
        Seconds after which to stop with what is known, for all policies together.
    paths : tuple of str
        State variables, such as ``"node[0]"``, whose paths are recorded for pictures.
    """

    events: Annotated[int, Ge(1)] | None = None
    time: Annotated[float, Gt(0), Unit("time")] | None = None
    half_width: Annotated[float, Gt(0), Unit("cost/time")] | None = None
    warm_up: Literal["mser"] | Annotated[float, Ge(0), Unit("time")] = "mser"
    replications: Annotated[int, Ge(2)] = 8
    seed: Annotated[int, Ge(0)] = 0
    n_jobs: Annotated[int, Ge(1)] = 1
    time_limit: Annotated[float, Gt(0), Unit("second")] | None = None
    paths: tuple[Annotated[str, MinLen(1)], ...] = ()

    def __post_init__(self) -> None:
        validate(self)
        if self.events is not None and self.time is not None:
            raise InputError("SimulateSettings: at most one of events and time can be given")
        if (
            self.time is not None
            and not isinstance(self.warm_up, str)
            and self.warm_up >= self.time
        ):
            raise InputError(
                f"SimulateSettings: warm_up is {self.warm_up:g}; it must be < time, {self.time:g}"
            )

    def arguments(self) -> dict[str, Any]:
        """Arguments of `mdpcloud.simulate`; the time limit and paths are the caller's to add."""
        names = ("events", "time", "half_width", "warm_up", "replications", "n_jobs")
        return {"rng": self.seed, **{name: getattr(self, name) for name in names}}

    @classmethod
    def of(cls, given: Mapping[str, Any] | SimulateSettings | None) -> SimulateSettings:
        """Settings from a mapping of some of them.

        Raises
        ------
        InputError
            When a setting is unknown, or any is not as it must be; all of these are named.

        Examples
        --------
        >>> SimulateSettings.of({"sede": 3})
        Traceback (most recent call last):
        mdpcloud.errors.InputError: simulate has no setting 'sede'; did you mean 'seed'?
        """
        if isinstance(given, SimulateSettings):
            return given
        known = [one.name for one in dataclasses.fields(cls)]
        if not isinstance(given, Mapping | None):
            raise InputError(f"simulate is {given!r}; it must be a mapping of {', '.join(known)}")
        for name in given or {}:
            if name not in known:
                near = did_you_mean(str(name), known) or f"; there are {', '.join(known)}"
                raise InputError(f"simulate has no setting {name!r}{near}")
        try:
            return cls(**(given or {}))
        except InputError as error:
            raise InputError(f"simulate: {str(error).partition(': ')[2] or error}") from None
