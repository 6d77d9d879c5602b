"""A model compiled into arrays, and the kernels that run on them."""

from __future__ import annotations

from typing import Any

from mdpcloud.engine.problem import Choice, Problem, TermInfo
from mdpcloud.errors import InputError

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

    Raises
    ------
    InputError
        When the model is none, or not consistent.
    """
    from mdpcloud.model.model import Model
    from mdpcloud.model.tabular import TabularModel

    if not (isinstance(threads, int) and threads >= 1):
        raise InputError(f"threads is {threads!r}; it must be an integer >= 1")
    if isinstance(model, Model):
        from mdpcloud.engine.compiled import compile_events

        return compile_events(model, form, threads)
    if isinstance(model, TabularModel):
        from mdpcloud.engine.tabular import tabular_problem

        return tabular_problem(model)
    hint = "; take its .model()" if callable(getattr(model, "model", None)) else ""
    raise InputError(f"{model!r} is neither a Model nor a tabular model{hint}")
