"""A commented study to start from."""

from __future__ import annotations

__all__ = ["new_study"]

_STUDY = """\
# A study for mdpcloud: one task on many instances. Run it with: mdpcloud study FILE
# mdpcloud study FILE --dry-run lists the instances; --resume goes on after a stop.
format = 1
name = "my study"
base = "{base}"                  # a scenario; or a table [base] that holds one
# task = "compare"               # default; or "evaluate", "index_properties", "my_tasks.py:my_task"
# policies = ["policy_improvement", "my_rules.py:my_rule"]    # default: those of the base
# measures = ["mean_jobs"]       # further columns of results.csv
# set = {{ "solve.tolerance" = 1e-6 }}                          # changes of the base

# The instances are the product of the axes, the first of them outermost.
[[axes]]
path = "parameters.deadline"     # a number of the scenario, or a text
values = ["begin_service", "end_service"]

[[axes]]
path = "load"                    # no parameter, but the system has a method with_load(load);
first = 0.5                      # "my_axes.py:my_axis" is a function (system, value) -> system
last = 1.5
points = 5                       # or step = 0.25, or values = [0.5, 0.75, 1.0, 1.25, 1.5]
# spacing = "logarithmic"

# [[axes]]                       # of several at once
# path = "parameters.nodes[*].abandonment_rate"
# label = "patience"             # its column
# values = [0.1, 0.3, 1.0]

# [[axes]]                       # these change together
# paths = ["parameters.nodes[0].servers", "parameters.nodes[0].service_rate"]
# values = [[2, 10.0], [4, 5.0]]

# [[axes]]                       # a random design
# design = "latin_hypercube"     # or "uniform", "sobol"
# size = 20
# seed = 1
# [axes.ranges]
# "parameters.outside_cost" = {{ first = 0.1, last = 0.8 }}
# "parameters.nodes[1].servers" = {{ first = 1, last = 10, whole = true }}
# "compare.ties" = {{ among = ["first", "fastest"] }}

# [[blocks]]                     # a study in parts, one after the other; each may have
# name = "few servers"           # set and axes of its own, beside the common ones

# Median, 95th percentile, worst and wins over the instances, as text, Markdown and LaTeX
[[tables]]
name = "gaps"
value = "gap"                    # or "profit_gap", "cost", a measure
by = ["deadline"]

# PNG and PDF
[[figures]]
name = "gaps"
x = "load"
y = "gap"
panels = ["deadline"]
logarithmic = "y"
# [[figures]]
# name = "distribution"
# kind = "distribution"          # part of the instances whose gap is at most so large
"""


def new_study(base: str = "my.toml") -> str:
    """Text of a commented study of a scenario's file.

    Parameters
    ----------
    base : str
        The file, relative to that of the study.
    """
    return _STUDY.format(base=base)
