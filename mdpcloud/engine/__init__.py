"""A model compiled into arrays, and the kernels that run on them."""

from __future__ import annotations

from typing import Any

from mdpcloud.engine.problem import Choice, Problem, TermInfo

__all__ = ["Choice", "Problem", "TermInfo", "compile_model"]


def compile_model(model: Any, form: Any = None, threads: int = 1) -> Problem:
    """Compile a `Model` (lattice or indexed form) or a `TabularModel` (rows form).

    Parameters
    ----------
    model : Model or TabularModel
    form : {"lattice", "indexed", None}
        None chooses the faster one.
    threads : int
        Threads of a sweep.
    """
    from mdpcloud.model.model import Model

    if isinstance(model, Model):
        from mdpcloud.engine.compiled import compile_events

        return compile_events(model, form, threads)
    from mdpcloud.engine.tabular import tabular_problem

    return tabular_problem(model)
