"""Closed networks: phase-type service with random routing, and routing as a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


def phase_type(
    jobs: int, means: Sequence[float], branch: Sequence[float], route: Sequence[float]
) -> mc.Model:
    """Station 0 has two exponential stages, 1 is hyperexponential, 2 exponential.

    Jobs go from station 0 to 1 or 2 by the chances `route`, and back. ``x.stage`` is 0 at an empty
    station. The branches of station 1 have the chances `branch` and balanced means.
    """

    def waiting(x: Any) -> Any:
        return jobs - x.n[0] - x.n[1]

    def enter(x: Any, moves: int) -> Any:
        return np.where(x.n[0] == 0, 1, 0) if moves else np.where(x.n[0] > 1, -1, -2)

    def done_at_0(x: Any) -> list[mc.Move]:
        idle, next_stage = np.where(x.n[1] == 0, 1, 0), enter(x, 0)
        to_1 = [
            mc.Move(
                route[0] * np.where(idle, chance, 1.0 * (b == 0)),
                mc.step(n={0: -1, 1: +1}, stage={0: next_stage, 1: (b + 1) * idle}),
            )
            for b, chance in enumerate(branch)
        ]
        return [*to_1, mc.Move(route[1], mc.step(n={0: -1}, stage={0: next_stage}))]

    def done_at_1(b: int) -> Any:
        def moves(x: Any) -> list[mc.Move]:
            more = x.n[1] > 1
            return [
                mc.Move(
                    np.where(more, chance, 1.0 * (a == 0)),
                    mc.step(
                        n={0: +1, 1: -1},
                        stage={0: enter(x, 1), 1: np.where(more, a + 1, 0) - (b + 1)},
                    ),
                )
                for a, chance in enumerate(branch)
            ]

        return moves

    return mc.Model(
        mc.Reachable({"n": (jobs, 0), "stage": (1, 0)}),
        (
            mc.Event(
                "first stage", lambda x: 2 / means[0] * (x.stage[0] == 1), mc.step(stage={0: +1})
            ),
            mc.Event(
                "done at 0", lambda x: 2 / means[0] * (x.stage[0] == 2), mc.Action("go", done_at_0)
            ),
            *(
                mc.Event(
                    f"done at 1, branch {b}",
                    lambda x, b=b: 2 * branch[b] / means[1] * (x.stage[1] == b + 1),
                    mc.Action("go", done_at_1(b)),
                )
                for b in (0, 1)
            ),
            mc.Event(
                "done at 2",
                lambda x: 1 / means[2] * (waiting(x) > 0),
                mc.Action("go", lambda x: mc.step(n={0: +1}, stage={0: enter(x, 1)})),
            ),
        ),
        cost_rate=lambda x: -2 / means[0] * (x.stage[0] == 2),
        measures={
            "at 0": lambda x: x.n[0],
            "at 1": lambda x: x.n[1],
            "at 2": waiting,
            "out of 2": ("done at 2", "go"),
        },
    )


def routing_after_0(jobs: int, rates: Sequence[float]) -> mc.Model:
    """Exponential stations; a job that leaves station 0 chooses its next one; pays throughput."""

    def at(x: Any, k: int) -> Any:
        return x.n[k - 1] if k else jobs - x.n[0] - x.n[1]

    done = mc.Event(
        "done at 0",
        lambda x: rates[0] * (at(x, 0) > 0),
        (
            mc.Action("to 1", mc.step(n={0: +1}), cost=-1.0),
            mc.Action("to 2", mc.step(n={1: +1}), cost=-1.0),
        ),
    )
    back = [
        mc.Event(f"done at {k}", lambda x, k=k: rates[k] * (at(x, k) > 0), mc.step(n={k - 1: -1}))
        for k in (1, 2)
    ]
    return mc.Model(
        mc.Lattice({"n": (jobs, jobs)}, where=lambda x: x.n[0] + x.n[1] <= jobs),
        (done, *back),
        measures={"throughput": lambda x: rates[0] * (at(x, 0) > 0)},
    )


MIXED = next(
    n
    for n in reference("networks")["C_closed_ph_network"]["networks"]
    if (n["net"], n["K"]) == ("mixed_central", 4)
)
ROUTE = reference("networks")["C_closed_ph_network"]["routing_mdp"][2]
BRANCH = 0.5 * (1 + np.sqrt((MIXED["scv"][1] - 1) / (MIXED["scv"][1] + 1)))


def shortest_delay(x: Any) -> Any:
    """Join the station with the smaller expected delay, the first one on ties."""
    _, first, second = ROUTE["mu"]
    return np.where((x.n[0] + 1) / first <= (x.n[1] + 1) / second * (1 + 1e-12), "to 1", "to 2")


CASES = (
    Case(
        "closed phase-type network",
        lambda: phase_type(MIXED["K"], MIXED["means"], (BRANCH, 1 - BRANCH), MIXED["P"][0][1:]),
        "networks.json C",
        -MIXED["exact"]["X"],
        {
            "uncontrolled": Heuristic(
                {},
                -MIXED["exact"]["X"],
                {
                    **{f"at {k}": length for k, length in enumerate(MIXED["exact"]["L"])},
                    "out of 2": MIXED["exact"]["Xcheck"][2],
                },
            )
        },
        tolerance=1e-12,
    ),
    Case(
        "closed network with routing",
        lambda: routing_after_0(ROUTE["K"], ROUTE["mu"]),
        "networks.json C",
        -ROUTE["opt"],
        {
            "shortest delay": Heuristic(
                {"done at 0": shortest_delay}, -ROUTE["jsq"], {"throughput": ROUTE["jsq"]}
            ),
            "static": Heuristic(
                {
                    "done at 0": {
                        "to 1": ROUTE["static_best"]["p"],
                        "to 2": 1 - ROUTE["static_best"]["p"],
                    }
                },
                -ROUTE["static_best"]["X"],
            ),
        },
        tolerance=1e-11,
    ),
)
