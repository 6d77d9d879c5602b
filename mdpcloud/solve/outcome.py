"""What a solver hands back, and how it decides that its bounds are good enough."""

from __future__ import annotations

from dataclasses import dataclass

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.certificate import Certificate
from mdpcloud.solve.limits import Status

__all__ = ["FIRST_PART", "Outcome", "ending", "sharpen"]

FIRST_PART = 0.9  # of the goal: what the plain bounds have to reach before they are certified
LAST_PART = 1e-3


@dataclass(frozen=True, eq=False)
class Outcome:
    """Relative values (work array), their certificate, and how the solver ended.

    ``handed_over``: it stopped at a limit of its own, though its bounds were closing.
    """

    h: Floats
    certificate: Certificate
    status: Status
    handed_over: bool = False


def sharpen(certificate: Certificate, plain: float, width: float, part: float) -> float | None:
    """Part of the goal for the plain bounds, such that the certified, wider ones meet it.

    It is None where rounding alone exceeds the goal.

    Parameters
    ----------
    certificate : Certificate
        It missed the goal.
    plain, width : float
        Width of the plain bounds, and the goal.
    part : float
        The part that the plain bounds had to reach so far.
    """
    rounding = max(certificate.width - plain, 0.0)
    part = min(0.5 * part, 0.9 * (1.0 - rounding / width))
    return part if part > LAST_PART else None


def ending(certificate: Certificate, plain: float, width: float, margin: float) -> Status:
    """How a solver whose bounds no longer close has ended.

    Parameters
    ----------
    certificate : Certificate
    plain, width : float
        Width of the plain bounds, and the goal.
    margin : float
        How far equal right-hand sides may differ by rounding (`rounding_margin`).
    """
    if certificate.width <= width:
        return Status.CONVERGED
    rounding = max(certificate.width - plain, 0.0)
    by_rounding = plain <= 10.0 * rounding or certificate.width <= margin
    return Status.PRECISION if by_rounding else Status.STALLED
