"""How every policy of a comparison is simulated."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mdpcloud.simulate.result import SimulationResult, SimulationWarning
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.simulate.simulate import simulate

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """How to simulate every policy.

    Attributes
    ----------
    settings : SimulateSettings
    ties : str
    progress : function of (events, lower, upper), or None
    """

    settings: SimulateSettings
    ties: str = "fastest"
    progress: Any = None
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any] | SimulateSettings | None,
        ties: str,
        progress: Any,
        time_limit: float | None = None,
    ) -> Plan:
        """A plan from what is given; ``time_limit`` (seconds) holds where none is given.

        Raises
        ------
        InputError
            When a setting is unknown or wrong.
        """
        settings = SimulateSettings.of(given)
        if settings.time_limit is None:
            settings = replace(settings, time_limit=time_limit)
        return cls(settings, ties, progress)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for results."""
        return asdict(self.settings)

    def run(
        self, system: Any, policy: Any, after: SimulationResult | None, left: int
    ) -> SimulationResult:
        """Simulate one of the policies that are left.

        Where no half width is asked for, it takes as long as the one ``after`` which it comes.
        """
        settings = self.settings
        if after is not None and settings.half_width is None:
            settings = replace(settings, events=None, time=after.time)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # the notes of the result say it
            return simulate(
                system,
                policy,
                **settings.arguments(),
                time_limit=self._share(left),
                paths=settings.paths,
                ties=self.ties,
                progress=self.progress,
                strict=False,
            )

    def _share(self, left: int) -> float | None:
        """Seconds of the time limit for one of the policies that are left, a tenth at least."""
        limit = self.settings.time_limit
        if limit is None:
            return None
        remaining = limit - (time.perf_counter() - self.started)
        return float(max(remaining / left, 0.1 * limit / left))
