# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading a study
#
# A study is one task on many instances. This one compares four routing rules with the certified
# optimum on two nodes, at eleven loads and for both meanings of a deadline. A study file names a
# scenario as its base, and axes; `mdpcloud study loads.toml` runs it as well.

# %%
from pathlib import Path

from IPython.display import Image, Markdown, display

import mdpcloud as mc

LOADS = """
format = 1

[base]
format = 1
system = "cloud_routing"

[base.parameters]
arrival_rate = 8.0
outside_cost = 0.3
nodes = [
  { servers = 1, service_rate = 4.0, abandonment_rate = 0.5 },
  { servers = 4, service_rate = 1.0, abandonment_rate = 0.5 },
]

[[axes]]
path = "parameters.deadline"
values = ["begin_service", "end_service"]

[[axes]]
path = "load"
first = 0.5
last = 1.5
points = 11

[[tables]]
by = ["deadline"]

[[figures]]
name = "gaps"
x = "load"
panels = ["deadline"]
"""

Path("loads.toml").write_text(LOADS)
study = mc.study.read_study("loads.toml")
print(len(study.instances), "instances, the first at", study.instances[0])

# %% [markdown]
# Every instance has a record, one JSON file, stored as soon as it is computed: a run that is
# stopped or killed goes on with `resume=True`, and computes only what is missing.

# %%
results = mc.study.run(study, jobs=2)
results.counts()

# %% [markdown]
# ## The table, and a figure
#
# For each rule the median, the 95th percentile and the worst of its gaps, how often it wins, and
# the instance of the worst. `latex()` and `text()` give the same for a paper and for a terminal.

# %%
display(Markdown(mc.study.summary(results, study.outputs.tables[0]).markdown()))

# %%
for path in mc.study.draw(results, "loads.results"):
    if path.suffix == ".png":
        display(Image(path, width=720))

# %% [markdown]
# ## Rows
#
# `rows()` is a list of plain dicts, one per instance and policy, the same as `results.csv`. Which
# rule is how far from the optimum, and where?

# %%
rows = [row for row in results.rows() if row["gap"] is not None]
worst = max(rows, key=lambda row: row["gap"])
for name in ("instance", "deadline", "load", "policy", "cost", "lower", "upper", "gap"):
    print(f"{name:10} {worst[name]}")

# %% [markdown]
# ## The worst instance, opened
#
# An instance holds its scenario, so that everything there is for one system can be asked of it.

# %%
instance = study.instances[worst["instance"]]
found = mc.compare(instance.scenario.system, [worst["policy"], "policy_improvement"])
for path in found.plot("worst"):
    display(Image(path, width=720))

# %% [markdown]
# ## One more axis
#
# Add an axis to the file, and run it again in the same folder: an instance that is there already,
# whatever its place in the study, is not computed again.

# %%
COSTS = """
[[axes]]
path = "parameters.outside_cost"
values = [0.3, 0.6]
"""

PANELS = LOADS.replace('panels = ["deadline"]', 'panels = ["deadline", "outside_cost"]')
Path("loads.toml").write_text(PANELS + COSTS)
wider = mc.study.read_study("loads.toml")
kept = mc.study.load(wider).counts()
results = mc.study.run(wider, jobs=2, resume=True)
print(kept)
print(results.counts())
display(Markdown(mc.study.summary(results, wider.outputs.tables[0]).markdown()))
