"""Two unreliable servers with retrials: blocked and interrupted jobs try again from an orbit."""

from __future__ import annotations

from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


def retrial(
    orbit: int,
    reject: float,
    hold: float,
    *,
    lam: float,
    mu: float,
    theta: float,
    xi: float,
    phi: float,
    eta: float,
    pf: float,
    **_: Any,
) -> mc.Model:
    """Blocked jobs join the orbit or are rejected at a price; the orbit holds at most `orbit` jobs.

    Rates: arrivals `lam`, service `mu`, retrials `theta` per job, failures `xi` of a busy and `phi`
    of an idle server, repairs `eta`; an interrupted job joins the orbit with probability `pf`.
    """

    def full(x: Any) -> Any:
        return x.busy + x.down == 2

    def lost(x: Any) -> Any:
        return 1 - pf * (x.orbit < orbit)

    return mc.Model(
        mc.Lattice({"orbit": orbit, "busy": 2, "down": 2}, where=lambda x: x.busy + x.down <= 2),
        (
            mc.Event(
                "arrival",
                lam,
                (
                    mc.Action("serve", mc.step(busy=+1)),
                    mc.Action("orbit", mc.step(orbit=+1), allowed=full),
                    mc.Action("reject", cost=reject, allowed=full),
                ),
            ),
            mc.Event("retrial", lambda x: theta * x.orbit * ~full(x), mc.step(orbit=-1, busy=+1)),
            mc.Event("service", lambda x: mu * x.busy, mc.step(busy=-1)),
            mc.Event(
                "failure while busy",
                lambda x: xi * x.busy,
                mc.Action(
                    "fail",
                    [
                        mc.Move(lambda x: 1 - lost(x), mc.step(busy=-1, down=+1, orbit=+1)),
                        mc.Move(lost, mc.step(busy=-1, down=+1)),
                    ],
                ),
            ),
            mc.Event("failure while idle", lambda x: phi * (2 - x.busy - x.down), mc.step(down=+1)),
            mc.Event("repair", lambda x: eta * x.down, mc.step(down=-1)),
        ),
        cost_rate=lambda x: hold * x.orbit,
        measures={
            "in orbit": lambda x: x.orbit,
            "busy": lambda x: x.busy,
            "down": lambda x: x.down,
            "blocked": lambda x: 1.0 * full(x),
            "rejected": ("arrival", "reject"),
        },
    )


def blocked_jobs(action: str, orbit: int) -> Any:
    """Serve if a server is free, else always take that action (reject at the cap)."""

    def rule(x: Any) -> Any:
        blocked = np.where(x.orbit < orbit, action, "reject")
        return np.where(x.busy + x.down < 2, "serve", blocked)

    return rule


def split_blocked(join: float, orbit: int) -> dict[str, Any]:
    """Blocked jobs join the orbit with probability `join`."""

    def full(x: Any) -> Any:
        return 1.0 * (x.busy + x.down == 2)

    return {
        "serve": lambda x: 1 - full(x),
        "orbit": lambda x: join * full(x) * (x.orbit < orbit),
        "reject": lambda x: full(x) * (1 - join * (x.orbit < orbit)),
    }


PRICED = reference("networks")["G_unreliable_retrial"]["mdp"][2]
BASE = reference("networks")["G_unreliable_retrial"]["cases"][0]

CASES = (
    Case(
        "retrial",
        lambda: retrial(PRICED["M"], PRICED["reject_cost"], PRICED["hold"], **PRICED["params"]),
        "networks.json G",
        PRICED["optimal"],
        {
            "accept all": Heuristic(
                {"arrival": blocked_jobs("orbit", PRICED["M"])}, PRICED["accept_all"]
            ),
            "reject all": Heuristic(
                {"arrival": blocked_jobs("reject", PRICED["M"])}, PRICED["reject_all"]
            ),
        },
        tolerance=1e-11,
    ),
    Case(
        "retrial with given chances",
        lambda: retrial(BASE["M"], 0.0, 1.0, **BASE["params"]),
        "networks.json G",
        None,
        {
            "half join": Heuristic(
                {"arrival": split_blocked(BASE["params"]["pb"], BASE["M"])},
                BASE["exact"]["EN_orbit"],
                {
                    "in orbit": BASE["exact"]["EN_orbit"],
                    "busy": BASE["exact"]["E_busy"],
                    "down": BASE["exact"]["E_down"],
                    "blocked": BASE["exact"]["P_blocked"],
                    "rejected": BASE["exact"]["abandon_blocked"],
                },
            )
        },
        tolerance=1e-12,
    ),
)
