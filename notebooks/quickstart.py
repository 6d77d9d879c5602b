# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Quickstart
#
# Two server pools of equal capacity, a few fast servers and many slow ones, take jobs that lose
# patience while they wait. A job that is not routed to a pool is sent outside at a cost. How good
# are simple routing rules, compared with the best rule there is?

# %%
import numpy as np
from IPython.display import Image, display

import mdpcloud as mc

fast = mc.systems.Node(servers=2, service_rate=10.0, abandonment_rate=0.3)
slow = mc.systems.Node(servers=10, service_rate=2.0, abandonment_rate=0.3)
system = mc.systems.CloudRouting((fast, slow), arrival_rate=40.0, outside_cost=0.25)


# %% [markdown]
# ## The system's rules, and one of your own
#
# A rule is a function of the state `x`; here `x.node[k]` is the number of jobs at node `k`. It
# returns the name of an action: `"node 0"`, `"node 1"` or `"outside"`. `x` may hold arrays of many
# states at once, hence `np.where`; a rule with plain `if`s works too, state by state.


# %%
def fast_first(x):
    return np.where(x.node[0] < 4, "node 0", np.where(x.node[1] < 10, "node 1", "outside"))


found = mc.compare(
    system,
    {
        "static split": "bernoulli_split",
        "policy improvement": "policy_improvement",
        "fast first": fast_first,
    },
)


def table(found):
    best = found.optimum
    print(f"{'optimum':20} {best.cost:12.6f}   certified in [{best.lower:.9f}, {best.upper:.9f}]")
    for row in found.rows:
        print(f"{row.name:20} {row.cost:12.6f}   {found.gaps(row)['gap']:8.2%} above the optimum")


table(found)

# %% [markdown]
# The optimum is a theorem, not an estimate: the box of states is large enough to lose nothing, and
# the bounds include rounding. The pictures show what each rule costs, the index that the
# improved policy assigns to every pool, and where each rule sends a job.

# %%
for path in found.plot("out"):
    display(Image(path, width=720))

# %% [markdown]
# ## What a rule does to the jobs
#
# `evaluate` bounds the long-run averages of everything that the model measures.

# %%
evaluation = mc.evaluate(system.model(), fast_first)
for name in ("abandonment_rate", "outsourcing_rate", "mean_jobs[0]", "mean_jobs[1]"):
    lower, upper = evaluation.measures[name]
    print(f"{name:18} {(lower + upper) / 2:10.6f}")

# %% [markdown]
# ## A system of your own
#
# A system is a frozen dataclass with a method `model`. This one has no queues: jobs of two classes
# share two pools of servers, a job needs a free server or it is refused, and refusing a gold job
# costs five times as much. Should a standard job take the last free server?

# %%
from dataclasses import dataclass


@dataclass(frozen=True)
class SharedPools:
    """Two pools of servers with admission control for two classes of jobs."""

    servers: tuple[int, int] = (8, 20)
    service_rates: tuple[float, float] = (2.0, 1.0)
    gold_rate: float = 12.0
    standard_rate: float = 25.0
    gold_penalty: float = 5.0
    standard_penalty: float = 1.0

    def model(self, caps=None):
        space = mc.Lattice({"busy": caps or self.servers})
        pools = [mc.Action(f"pool {k}", mc.step(busy={k: +1})) for k in range(2)]
        arrivals = [
            mc.Event("gold", self.gold_rate, [*pools, self.refusal(self.gold_penalty)]),
            mc.Event("standard", self.standard_rate, [*pools, self.refusal(self.standard_penalty)]),
        ]
        services = [
            mc.Event(f"service {k}", self.completions(k), mc.step(busy={k: -1})) for k in range(2)
        ]
        measures = {f"{name} refused": (name, "refuse") for name in ("gold", "standard")}
        return mc.Model(space, [*arrivals, *services], measures=measures)

    def refusal(self, penalty):
        return mc.Action("refuse", cost=penalty)

    def completions(self, k):
        return lambda x: self.service_rates[k] * x.busy[k]


# %% [markdown]
# Two decisions, so a policy is a rule for each. Taking whatever is free, fast servers first, is
# compared with keeping the last servers for gold jobs.

# %%
pools = SharedPools()
n_fast, n_slow = pools.servers


def first_free(x):
    free = np.where(x.busy[1] < n_slow, "pool 1", "refuse")
    return np.where(x.busy[0] < n_fast, "pool 0", free)


def keep(kept):
    def unless_few_are_left(x):
        free = n_fast + n_slow - x.busy[0] - x.busy[1]
        return np.where(free > kept, first_free(x), "refuse")

    return {"gold": first_free, "standard": unless_few_are_left}


found = mc.compare(pools, {f"keep {kept}": keep(kept) for kept in (0, 1, 2, 3, 4)})
table(found)

# %%
for path in found.plot("out/pools"):
    display(Image(path, width=720))

# %% [markdown]
# Keeping two servers is as good as anything can be: it is the optimal policy, state by state.

# %%
best = found.optimum.policy
kept = mc.policy(pools.model(), keep(2))
for decision in ("gold", "standard"):
    same = best.table(decision) == kept.table(decision)
    print(f"{decision:9} the same action in {same.sum()} of {same.size} states")

# %% [markdown]
# From here: `mc.solve(model)` for the optimum alone, `mc.improve(model, rule)` for one exact step
# of policy improvement, `mdpcloud new cloud_routing > my.toml` for a scenario file with comments.
