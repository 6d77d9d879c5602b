"""The index tables of a scenario, in the form that is asked for."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout

import mdpcloud as mc
from mdpcloud.cli.tables import print_notes
from mdpcloud.cli.work import mistakes_of
from mdpcloud.indices.table import IndexTable, Units
from mdpcloud.indices.table_c import to_c
from mdpcloud.indices.table_csv import to_csv
from mdpcloud.indices.table_lua import to_lua
from mdpcloud.scenario import Scenario

__all__ = ["indices"]

FORMS: dict[str, Callable[[IndexTable], str]] = {
    "json": IndexTable.to_json,
    "csv": to_csv,
    "lua": to_lua,
    "c": to_c,
}


def indices(
    scenario: Scenario, form: str, policies: Sequence[str] | None, states: int | None
) -> str:
    """Index tables of the scenario's system; what a reader has to know goes to standard error."""
    if not hasattr(scenario.system, "index_table"):
        raise mc.InputError(
            f"the system {scenario.system_name!r} has no index tables, "
            "which a method index_table gives (mdpcloud.indices.index_table_of builds them)"
        )
    with mistakes_of(scenario):
        table = scenario.system.index_table(scenario.compare.ties, policies, states)
        notes = tuple(getattr(scenario.system, "notes", ()))
    with redirect_stdout(sys.stderr):
        print_notes({"notes": notes, "policies": ()})
    return FORMS[form](_labelled(table, scenario))


def _labelled(table: IndexTable, scenario: Scenario) -> IndexTable:
    """The table with what only the scenario knows."""
    cost = scenario.cost_unit
    return dataclasses.replace(
        table,
        system=scenario.system_name,
        name=scenario.name,
        scenario_sha256=scenario.sha256,
        units=Units(scenario.time_unit, cost, f"{cost} per job"),
    )
