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
# # Deriving indices
#
# Whittle's index of a restless arm is the price of work at which being active and being passive are
# equally good. It exists if, as the price grows, every state turns passive once and stays so.
#
# ## A queue that may refuse jobs
#
# Jobs come at rate 0.8, one server works at rate 1, a waiting job loses patience at rate 0.3. The
# arm is active where it refuses the next job, and its work is the jobs it refuses: the index of a
# state is what one more job costs there.

# %%
import numpy as np
from IPython.display import Image, display
from matplotlib.figure import Figure

import mdpcloud as mc
from mdpcloud import runtime
from mdpcloud.plots.indices import Curve, draw_indices
from mdpcloud.plots.style import LINES

queue = mc.indices.birth_death_arm(
    births0=0.8,
    births1=0.0,
    deaths0=lambda i: np.minimum(i, 1) + 0.3 * np.maximum(i - 1, 0),
    deaths1=lambda i: np.minimum(i, 1) + 0.3 * np.maximum(i - 1, 0),
    costs0=lambda i: 0.3 * np.maximum(i - 1, 0),
    costs1=lambda i: 0.3 * np.maximum(i - 1, 0),
    work1=0.8,
    room=60,
)
found = mc.indices.whittle(queue)
print(found)
for state in range(6):
    print(f"state {state}: {found.index[state]:.9f}")
print(f"each within {found.error.max():.0e}, a {found.error_kind}")

# %% [markdown]
# An empty server takes a job at no cost; nowhere does one cost more than 1, the loss of the job.

# %%
figure = Figure(figsize=(7, 3.5), layout="constrained")
axes = figure.subplots()
draw_indices(axes, [Curve("Whittle's index", found.index[:30].tolist())])
axes.set(xlabel="jobs in service and waiting", ylabel="cost per job")
figure.savefig("queue.png", dpi=150)
display(Image("queue.png", width=720))

# %% [markdown]
# ## An arm without an index
#
# Not every arm has one. The verdict then comes with a witness: a state that is passive at a lower
# price and active at a higher one, by margins that were computed afresh at both.

# %%
stay = [
    [0.2168, 0.7246, 0.0050, 0.0536],
    [0.4630, 0.2776, 0.0475, 0.2119],
    [0.0906, 0.1627, 0.0822, 0.6645],
    [0.4645, 0.1505, 0.1958, 0.1892],
]
work = [
    [0.1013, 0.5090, 0.2344, 0.1553],
    [0.1655, 0.0166, 0.1173, 0.7006],
    [0.3943, 0.5640, 0.0156, 0.0261],
    [0.0543, 0.1092, 0.0992, 0.7373],
]
arm = mc.indices.arm(
    stay,
    work,
    rewards0=[0.7235, 0.8718, 0.6831, 0.5825],
    rewards1=[0.5426, 0.1168, 0.7152, 0.8725],
)
none = mc.indices.whittle(arm, mc.Discounted(factor=0.99))
witness = none.witness
print(none)
print(f"state {witness.state} at price {witness.lower:7.4f}: passive, by {witness.margins[0]:.2e}")
print(f"state {witness.state} at price {witness.upper:7.4f}: active, by {witness.margins[1]:.2e}")

# %% [markdown]
# Asking it for an index is an error, never a number.

# %%
try:
    print(none.index)
except mc.indices.NoIndexError as error:
    print(error)

# %% [markdown]
# ## Indices of nodes
#
# `cloud_routing` has three indices per node: of the individual optimum, of policy improvement, and
# Whittle's of the restless bandit.

# %%
fast = mc.systems.Node(servers=2, service_rate=10.0, abandonment_rate=0.3)
slow = mc.systems.Node(servers=10, service_rate=2.0, abandonment_rate=0.3)
system = mc.systems.CloudRouting((fast, slow), arrival_rate=40.0, outside_cost=0.25)
table = system.index_table(states=40)

figure = Figure(figsize=(9, 3.5), layout="constrained")
for k, axes in enumerate(figure.subplots(1, 2, sharey=True)):
    curves = [
        Curve(name.replace("_", " "), nodes[k].index, colour, marker)
        for (name, nodes), colour, marker in zip(
            table.policies.items(), LINES[1:4], "s^D", strict=True
        )
    ]
    draw_indices(axes, curves, limit=system.outside_cost)
    axes.set(xlabel="jobs at the node", title=f"node {k}")
    axes.legend(frameon=False)
figure.supylabel("cost per job")
figure.savefig("nodes.png", dpi=150)
display(Image("nodes.png", width=900))

# %% [markdown]
# ## Properties
#
# An index that makes sense grows with the jobs at the node, with the load, with impatience and with
# the cost outside, and falls with the speed and number of its servers: properties P1 to P6.

# %%
from mdpcloud.systems.routing_properties import PROPERTIES, index_properties

for one in index_properties(system):
    found = f"violated by {one.violation:.2e} ({one.change})" if one.violated else "holds"
    print(f"{one.index:22} {one.name} {PROPERTIES[one.name]:34} {found}")

# %% [markdown]
# ## Into production
#
# The table is one JSON file. `mdpcloud/runtime.py` reads it with the standard library alone, and
# can be copied to where decisions are made: 0 sends the job outside, k + 1 to node k.

# %%
from pathlib import Path

Path("indices.json").write_text(table.to_json())
choose = runtime.load("indices.json").policy("policy_improvement")
for state in ((0, 0), (3, 0), (3, 20), (9, 40)):
    print(state, "->", choose(state))
