"""Stationary laws of large lattices: by hand, by sparse LU, by mdpcloud.

``python -m benchmarks.stationary`` prints the table; with the names of an instance and a method it
measures that one in this process.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.process import in_own_process
from benchmarks.report import Table, show
from benchmarks.worker import memory

__all__ = ["INSTANCES", "METHODS", "main", "tables"]

TOLERANCE = 1e-12
PATIENCE = 30.0  # CPU seconds after which sweeps by hand are given up
BATCH = 50  # sweeps between two looks at the residual
GOAL = 3.0  # times faster, at a million states
MEMORY = 400.0  # MB


@dataclass(frozen=True)
class Instance:
    """Jobs of one stream to nodes with finite rooms, split by a rule."""

    caps: tuple[int, ...]
    servers: tuple[int, ...]
    service: tuple[float, ...]
    abandonment: float
    arrival: float
    rule: str = "shortest"

    def deaths(self) -> NDArray[Any]:
        """Departure rates of each node by its number of jobs, (d, n)."""
        counts = [np.arange(cap + 1) for cap in self.caps]
        return np.array(
            [
                mu * np.minimum(i, m) + self.abandonment * np.maximum(i - m, 0)
                for i, m, mu in zip(counts, self.servers, self.service, strict=True)
            ]
        )

    def births(self) -> NDArray[Any]:
        """Arrival rate to each node in every state, (d, n, ..., n)."""
        mesh = np.ogrid[tuple(slice(0, cap + 1) for cap in self.caps)]
        free = [i < cap for i, cap in zip(mesh, self.caps, strict=True)]
        if self.rule == "split":
            share = np.array(self.servers) * np.array(self.service)
            share = self.arrival * share / share.sum()
            return np.array(
                [rate * (f & (sum(mesh) >= 0)) for rate, f in zip(share, free, strict=True)]
            )
        chosen = shortest(mesh, free, self.servers)
        return np.array([self.arrival * (chosen == k) for k in range(len(self.caps))])

    def problem(self) -> tuple[Any, Any]:
        """Model and rule for mdpcloud."""
        import mdpcloud as mc

        nodes = tuple(
            mc.systems.Node(m, mu, self.abandonment, room=cap)
            for m, mu, cap in zip(self.servers, self.service, self.caps, strict=True)
        )
        model = mc.systems.CloudRouting(nodes, self.arrival, 1.0).model(self.caps)
        if self.rule == "shortest":
            return model, self._join_shortest
        share = np.array(self.servers) * np.array(self.service)
        share = share / share.sum()
        rules: dict[str, Any] = {
            f"node {k}": lambda x, k=k: share[k] * (x.node[k] < self.caps[k])
            for k in range(len(self.caps))
        }
        rules["outside"] = lambda x: sum(
            share[k] * (x.node[k] == self.caps[k]) for k in range(len(self.caps))
        )
        return model, rules

    def _join_shortest(self, x: Any) -> Any:
        free = [i < cap for i, cap in zip(x.node, self.caps, strict=True)]
        return 1 + shortest(x.node, free, self.servers)


def shortest(counts: Any, free: Any, servers: Any) -> Any:
    """Number of the free node with fewest jobs per server, -1 if none is free."""
    best: Any = np.inf
    chosen: Any = np.int8(-1)
    for k, (i, f, m) in enumerate(zip(counts, free, servers, strict=True)):
        load = np.where(f, i / m, np.inf)
        chosen = np.where(load < best, np.int8(k), chosen)
        best = np.minimum(best, load)
    return chosen


def instances() -> dict[str, Instance]:
    """Each box with flow in a corner, along a ridge, in the middle, and nearly everywhere."""
    found = {}
    for name, caps in {
        "316^2": (315,) * 2,
        "47^3": (46,) * 3,
        "1000^2": (999,) * 2,
        "100^3": (99,) * 3,
    }.items():
        d = len(caps)
        few, fast = (2, 5, 10)[:d], (10.0, 4.0, 2.0)[:d]
        many = tuple(2 * (cap // 5) for cap in caps)
        one, slow = (1,) * d, (1.0, 1.1, 1.2)[:d]
        found[f"{name} corner"] = Instance(caps, few, fast, 0.3, 16.0 * d)
        found[f"{name} ridge"] = Instance(caps, few, fast, 0.02, 20.0 * d)
        found[f"{name} middle"] = Instance(caps, many, (1.0,) * d, 0.3, 0.95 * sum(many))
        found[f"{name} spread"] = Instance(caps, one, slow, 0.0, 0.995 * sum(slow), "split")
    return found


INSTANCES = instances()
SHOWN = (
    "316^2 spread",
    "47^3 corner",
    "47^3 spread",
    "100^3 corner",
    "100^3 spread",
    "1000^2 ridge",
)
"""What `make bench` measures; the others take many minutes by hand."""


def by_hand(instance: Instance, factor: float) -> dict[str, Any]:
    """Successive over-relaxation without a matrix, in one numba kernel per dimension."""
    from benchmarks.plain_sor import outflow, residual, sweeps

    deaths, births = instance.deaths(), instance.births()
    law = np.full([cap + 1 for cap in instance.caps], 1.0)
    law /= law.size
    inverse = 1.0 / outflow(deaths, births)
    start, count, left = time.process_time(), 0, np.inf
    while not left <= TOLERANCE and time.process_time() - start < PATIENCE:
        sweeps(law, inverse, deaths, births, factor, BATCH)
        count += BATCH
        law /= law.sum()
        left = residual(law, deaths, births)
        if not left < 1e6:
            break
    return {"residual": left, "law": law.ravel(), "count": count}


def over_relaxed(instance: Instance) -> dict[str, Any]:
    """SOR with factor 1.5."""
    return by_hand(instance, 1.5)


def gauss_seidel(instance: Instance) -> dict[str, Any]:
    """SOR with factor 1."""
    return by_hand(instance, 1.0)


def sparse_lu(instance: Instance) -> dict[str, Any]:
    """SciPy's splu with diagonal pivots in an order of little fill, one equation replaced."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    model, rule = instance.problem()
    rates = matrix(model, rule)
    out = np.asarray(rates.sum(axis=1)).ravel()
    balance = sparse.csc_array(sparse.diags_array(out) - rates.T)
    pin = 0
    law = np.ones(out.size)
    inner = balance[1:][:, 1:].tocsc()
    lu = splu(
        inner, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    right = -balance[1:, [pin]].toarray().ravel()
    law[1:] = lu.solve(right)
    law[1:] += lu.solve(right - inner @ law[1:])
    law /= law.sum()
    return {"residual": relative(rates, out, law), "law": law, "count": 1}


def mdpcloud(instance: Instance) -> dict[str, Any]:
    """`mdpcloud.stationary`: compilation of the model, tabulation of the rule, solution."""
    import mdpcloud as mc

    model, rule = instance.problem()
    return {"law": mc.stationary(model, rule, tolerance=TOLERANCE), "count": 0}


def matrix(model: Any, rule: Any) -> Any:
    """Rates of the chain (CSR)."""
    from mdpcloud.solve.stationary.stationary import chain_of

    return chain_of(model, rule).rates


def relative(rates: Any, out: Any, law: Any) -> float:
    """sum_y |inflow(y) - outflow(y)| / sum_y outflow(y)."""
    return float(np.abs(rates.T @ law - law * out).sum() / (law * out).sum())


METHODS: dict[str, Callable[[Instance], dict[str, Any]]] = {
    "SOR(1.5) by hand": over_relaxed,
    "Gauss-Seidel by hand": gauss_seidel,
    "sparse LU": sparse_lu,
    "mdpcloud": mdpcloud,
}


def measure(name: str, method: str) -> dict[str, Any]:
    """CPU seconds, peak memory, residual, mean number of jobs; after a warm-up on a small box."""
    instance = INSTANCES[name]
    small = Instance(
        (30,) * len(instance.caps),
        instance.servers,
        instance.service,
        max(instance.abandonment, 0.3),
        instance.arrival,
        instance.rule,
    )
    METHODS[method](small)
    gc.collect()
    begin = time.process_time()
    found = METHODS[method](instance)
    cpu = time.process_time() - begin
    _, peak = memory()
    law = found.pop("law").reshape([cap + 1 for cap in instance.caps])
    if "residual" not in found:
        from benchmarks.plain_sor import residual

        found["residual"] = residual(law, instance.deaths(), instance.births())
    jobs = sum(
        float(law.sum(axis=tuple(j for j in range(law.ndim) if j != k)) @ np.arange(law.shape[k]))
        for k in range(law.ndim)
    )
    return {**found, "cpu": cpu, "peak": peak, "jobs": jobs}


def methods_for(name: str) -> list[str]:
    """Sparse LU is left out in three dimensions, where it takes minutes and gigabytes."""
    return [m for m in METHODS if m != "sparse LU" or len(INSTANCES[name].caps) == 2]


def tables(repeats: int, names: list[str] | None = None) -> list[Table]:
    """Measure instances (`SHOWN` by default); the methods take turns."""
    rows = []
    for name in names or SHOWN:
        runs: dict[str, list[dict[str, Any]]] = {method: [] for method in methods_for(name)}
        for _ in range(repeats):
            for method, several in runs.items():
                several.append(in_own_process("benchmarks.stationary", "--one", name, method))
        rows += rows_of(name, runs)
    return [
        Table(
            "Stationary law",
            ["instance", "method", "CPU s", "over mdpcloud", "peak MB", "residual", "jobs"],
            rows,
            f"One thread, a fresh process per run, medians of {repeats} runs that take turns. All "
            f"stop at a relative residual of {TOLERANCE:g}; mdpcloud's time includes compiling the "
            "model and tabulating the rule. By hand: one numba kernel without a matrix, its flow "
            f"tables ready. '-': diverged; '>': not within {PATIENCE:g} s. Goals: no method faster "
            f"than mdpcloud on 316^2 and 47^3; {GOAL:g} times faster and at most {MEMORY:g} MB on "
            "a million states.",
        )
    ]


def rows_of(name: str, runs: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Medians; every law that met the tolerance must have the same mean number of jobs."""
    own = statistics.median(run["cpu"] for run in runs["mdpcloud"])
    jobs = runs["mdpcloud"][0]["jobs"]
    rows = []
    for method, several in runs.items():
        cpu, peak, left = (
            statistics.median(run[key] for run in several) for key in ("cpu", "peak", "residual")
        )
        met = left <= TOLERANCE
        assert not met or abs(several[0]["jobs"] - jobs) <= 1e-5 * jobs, (name, method, several)
        mark = "" if met else ("> " if cpu >= PATIENCE else "- ")
        rows.append(
            [
                name,
                method,
                f"{mark}{cpu:.2f}",
                f"{mark}{cpu / own:.2f}",
                f"{peak:.0f}",
                f"{left:.0e}",
                f"{several[0]['jobs']:.6f}" if met else "",
            ]
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stationary", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--instances", nargs="+", choices=list(INSTANCES))
    parser.add_argument("--one", nargs=2, metavar=("INSTANCE", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    for name in options.instances or list(INSTANCES):
        for table in tables(options.repeats, [name]):
            show(table)


if __name__ == "__main__":
    main()
