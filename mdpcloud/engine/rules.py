"""Rules written by people, turned into policies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Problem, TermInfo
from mdpcloud.errors import InputError
from mdpcloud.model.calls import call, unknown_axis
from mdpcloud.model.matrices import as_floats
from mdpcloud.model.policy import Policy
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.plugins import did_you_mean

__all__ = [
    "action_number",
    "action_numbers",
    "by_decision",
    "check_arguments",
    "hint",
    "policy",
    "policy_for",
]

Array = NDArray[Any]
SPOT_CHECKS = 32  # states at which a rule called with arrays is compared with one call per state


def policy(model: Any, rules: Mapping[str, Any] | Any) -> Policy:
    """Turn rules into a policy of a model.

    Parameters
    ----------
    model : Model or TabularModel
    rules : mapping from event or control to a rule, or the rule itself where there is one decision
        A rule is a function of the state x that returns the name or number of an action (of one
        state, or of arrays of them), an array of n action numbers, a mapping from actions to
        probabilities (numbers, arrays (n,) or functions of x), the name of an action, or its
        number. Where there are several decisions, one function may stand for all of their rules:
        it returns a mapping from decisions to the names or numbers of actions.

    Returns
    -------
    Policy

    Raises
    ------
    InputError
        When an event or action is unknown, an action is not allowed in some state (the message
        names the state), probabilities do not sum to 1, or a function does not take one argument.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=1.0)
    >>> arrival = mc.Event("arrival", 0.5, [join, lost])
    >>> service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    >>> queue = mc.Model(mc.Lattice({"jobs": 3}), [arrival, service])
    >>> mc.policy(queue, lambda x: np.where(x.jobs < 2, "join", "lost")).table()
    array([0, 0, 1, 1], dtype=int8)
    """
    from mdpcloud.engine import compile_model

    return policy_for(compile_model(model), rules)


def policy_for(problem: Problem, rules: Mapping[str, Any] | Any) -> Policy:
    """As `policy`, for a compiled problem; a `Policy` is checked like any other rules.

    A solution or evaluation stands for its policy.

    Raises
    ------
    InputError
        As `policy`, and when a `Policy` was made for a model with other states or actions.
    """
    decisions = {term.name: (e, term) for e, term in enumerate(problem.terms) if term.decision}
    own = getattr(rules, "policy", None)
    rules = own if isinstance(own, Policy | TimedPolicy) else rules
    if isinstance(rules, TimedPolicy):
        raise InputError(
            "the policy changes with time, which needs a finite horizon: evaluate(model, policy, "
            "mdpcloud.FiniteHorizon(...)); its part at a time is policy.at(time)"
        )
    if isinstance(rules, Policy):
        rules.check(problem)
        rules = {name: _as_rule(array) for name, array in rules.actions.items()}
    named = _by_decision(rules, problem, decisions)
    actions = {}
    for name, (e, term) in decisions.items():
        if name not in named:
            raise InputError(f"no rule for decision {name!r}; decisions are {list(decisions)}")
        actions[name] = _tabulate(problem, e, term, named[name])
    names = {name: term.actions for name, (_, term) in decisions.items()}
    return Policy(actions, names, problem.shape)


def _by_decision(rules: Any, problem: Problem, decisions: Mapping[str, Any]) -> Mapping[str, Any]:
    terms = [term.name for term in problem.terms]
    if callable(rules) and decisions:
        return by_decision(rules, list(decisions), terms)
    if len(decisions) == 1 and not _names_events(rules, problem, *decisions.values()):
        return {next(iter(decisions)): rules}
    if not isinstance(rules, Mapping):
        raise InputError(
            "give a rule per decision, as a mapping, or a function that returns a mapping; "
            f"decisions are {list(decisions)}"
        )
    for name in rules:
        if name not in terms:
            raise InputError(f"the model has no event {name!r}{hint(name, terms)}")
    return rules


def by_decision(
    rule: Callable[[Any], Any], decisions: Sequence[str], events: Sequence[str]
) -> dict[str, Callable[[Any], Any]]:
    """The rule for each decision that a function of the state stands for.

    Parameters
    ----------
    rule : function of the state
        It returns a mapping from events to actions, or the action where there is one decision.
    decisions : sequence of str
        Events on which something is to be decided.
    events : sequence of str
        All events that a mapping may name.

    Raises
    ------
    InputError
        When it is no function of one argument.
    """
    check_arguments(rule, decisions[0] if len(decisions) == 1 else list(decisions))
    return {name: _ForOne(rule, name, tuple(decisions), tuple(events)) for name in decisions}


@dataclass(frozen=True, eq=False)
class _ForOne:
    """What a rule answers for one of the decisions."""

    rule: Callable[[Any], Any]
    name: str
    decisions: tuple[str, ...]
    events: tuple[str, ...]

    def __call__(self, x: Any) -> Any:
        answers = self.rule(x)
        if not isinstance(answers, Mapping):
            if len(self.decisions) == 1:
                return answers
            raise InputError(
                f"a function that decides on {list(self.decisions)} must return a mapping from "
                f"each of them to an action, not {answers!r}"
            )
        for key in answers:
            if key not in self.events:
                raise InputError(
                    f"the rule returns an action for {key!r}{hint(key, self.decisions)}"
                )
        if self.name not in answers:
            raise InputError(
                f"the rule returns actions for {list(answers)}, but none for decision {self.name!r}"
            )
        return answers[self.name]


def _names_events(rules: Any, problem: Problem, decision: tuple[int, TermInfo]) -> bool:
    """Whether rules are a mapping from events, and not the probabilities of the only decision."""
    if not isinstance(rules, Mapping):
        return False
    terms = [term.name for term in problem.terms]
    actions = [*decision[1].actions, *range(len(decision[1].actions))]
    return any(name in terms for name in rules) or not any(name in actions for name in rules)


def _as_rule(array: Array) -> Any:
    return array if array.ndim == 1 else dict(enumerate(array))


def hint(name: Any, known: Sequence[str]) -> str:
    """The end of a message on an unknown name: the one that was meant, or all there are."""
    return did_you_mean(str(name), known) or f"; there are {list(known)}"


def _tabulate(problem: Problem, e: int, term: TermInfo, rule: Any) -> Array:
    allowed, active = problem.allowed(e)
    if isinstance(rule, Mapping):
        return _probabilities(problem, term, rule, allowed, active)
    numbers = action_numbers(problem, term, rule)
    wrong = active & ((numbers < 0) | (numbers >= len(term.actions)))
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InputError(
            f"the rule for {term.name!r} returns action number {numbers[state]} in state "
            f"{problem.label(state)}; numbers are 0..{len(term.actions) - 1}"
        )
    numbers = np.where(active, numbers, -1)
    refused = active & ~allowed[numbers, np.arange(problem.n)]
    if refused.any():
        state = int(np.argmax(refused))
        possible = [
            name for name, mask in zip(term.actions, allowed[:, state], strict=True) if mask
        ]
        raise InputError(
            f"the rule for {term.name!r} takes action {term.actions[numbers[state]]!r} in state "
            f"{problem.label(state)}, where it is not allowed; allowed are {possible}"
        )
    return numbers.astype(np.int8 if len(term.actions) <= 128 else np.int32)


def action_numbers(problem: Problem, term: TermInfo, rule: Any) -> Array:
    """Action numbers that a deterministic rule returns, (n,); whether they are allowed is open."""
    return _numbers(_call(problem, term, rule) if callable(rule) else rule, term, problem)


def _numbers(chosen: Any, term: TermInfo, problem: Problem) -> Array:
    array = np.asarray(chosen)
    if array.ndim == 0:
        array = np.full(problem.n, array)
    if array.size != problem.n:
        raise InputError(
            f"the rule for {term.name!r} gives {array.size} actions for {problem.n} states"
        )
    array = array.reshape(problem.n)
    if array.dtype.kind == "U":
        return _from_names(array, term, problem)
    if array.dtype.kind == "O":
        number = {name: a for a, name in enumerate(term.actions)}
        known = [number.get(a, a) if isinstance(a, str) else a for a in array]
        array = np.array(known, dtype=object)
    wrong = _no_number(array)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InputError(
            f"the rule for {term.name!r} returns {array.tolist()[state]!r} in state "
            f"{problem.label(state)}; it must return the name or number of an action"
        )
    return array.astype(np.int64)


def _no_number(array: Array) -> Array:
    """Where an array holds anything but whole numbers."""
    if array.dtype.kind == "O":
        return np.array([not isinstance(answer, (int, np.integer)) for answer in array])
    if array.dtype.kind == "f":
        return np.asarray(~np.isfinite(array) | (array != np.round(array)))
    return np.full(array.size, array.dtype.kind not in "iub")


def _from_names(array: Array, term: TermInfo, problem: Problem) -> Array:
    number = {name: a for a, name in enumerate(term.actions)}
    unique, inverse = np.unique(array, return_inverse=True)
    names = [str(name) for name in unique]
    for name in names:
        if name not in number:
            state = int(np.argmax(array == name))
            raise InputError(
                f"the rule for {term.name!r} returns {name!r} in state {problem.label(state)}, "
                f"which is no action{hint(name, term.actions)}"
            )
    return np.array([number[name] for name in names])[inverse]


def _call(problem: Problem, term: TermInfo, rule: Callable[[Any], Any]) -> Any:
    """The rule in every state: one call with arrays where it takes them, else one per state."""
    check_arguments(rule, term.name)
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(rule(problem.state(slice(None))))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        result = np.asarray(None)
    if result.shape == (problem.n,) and result.dtype.kind in "iubfU":
        some = np.linspace(0, problem.n - 1, SPOT_CHECKS).astype(int)
        if all(_agrees(problem, term, rule, int(s), result[s]) for s in some):
            return result
    return _one_by_one([_answer(problem, term, rule, s) for s in range(problem.n)])


def check_arguments(rule: Callable[[Any], Any], decisions: Any) -> None:
    """Refuse a function that cannot be called with the state alone."""
    try:
        signature = inspect.signature(rule)
    except (TypeError, ValueError):  # some functions written in C do not tell
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(rule, "__name__", repr(rule))
        raise InputError(
            f"the rule for {decisions!r} must be a function of one argument, the state; "
            f"it is {name}{signature}"
        ) from None


def _agrees(
    problem: Problem, term: TermInfo, rule: Callable[[Any], Any], s: int, expected: Any
) -> bool:
    try:
        return bool(_answer(problem, term, rule, s) == expected)
    except Exception:  # a rule that takes arrays alone, and took them
        return True


def _answer(problem: Problem, term: TermInfo, rule: Callable[[Any], Any], s: int) -> Any:
    """What the rule returns in one state."""
    x, owner = problem.state(s), f"the rule for {term.name!r}"
    try:
        answer = np.asarray(rule(x))
    except AttributeError as error:
        raise unknown_axis(error, x, owner) from error
    if answer.size != 1:
        raise InputError(
            f"{owner} returns {answer.tolist()!r} in state {problem.label(s)}; it must return the "
            "name or number of one action"
        )
    return answer.item()


def _one_by_one(answers: list[Any]) -> Array:
    kinds = {str if isinstance(answer, str) else type(answer) for answer in answers}
    return np.array(answers, dtype=None if len(kinds) == 1 else object)


def action_number(key: Any, owner: str, actions: Sequence[str]) -> int:
    """Number of an action that is given by its name or number.

    Raises
    ------
    InputError
        When the event or control ``owner`` has no such action.
    """
    number = key if isinstance(key, (int, np.integer)) else None
    if number is None and key in actions:
        number = actions.index(key)
    if number is None or not 0 <= number < len(actions):
        raise InputError(f"{owner!r} has no action {key!r}{hint(str(key), actions)}")
    return int(number)


def _probabilities(
    problem: Problem, term: TermInfo, rule: Mapping[Any, Any], allowed: Array, active: Array
) -> Array:
    table = np.zeros((len(term.actions), problem.n))
    for key, value in rule.items():
        number = action_number(key, term.name, term.actions)
        owner = f"the probability of {key!r} for {term.name!r}"
        weight = call(value, problem.state(slice(None)), owner) if callable(value) else value
        weight = as_floats(weight, owner).ravel()
        if weight.size not in (1, problem.n):
            raise InputError(f"{owner} has {weight.size} numbers for {problem.n} states")
        table[number] = weight
    table[:, ~active] = 0.0
    total = table.sum(axis=0)
    wrong = active & ((np.abs(total - 1.0) > 1e-9) | (table < 0).any(axis=0) | ~np.isfinite(total))
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InputError(
            f"the probabilities for {term.name!r} are {table[:, state].tolist()} in state "
            f"{problem.label(state)}; they must be >= 0 and sum to 1"
        )
    refused = (table > 0) & ~allowed
    if refused.any():
        action, state = (int(k) for k in np.argwhere(refused)[0])
        raise InputError(
            f"the rule for {term.name!r} takes action {term.actions[action]!r} with positive "
            f"probability in state {problem.label(state)}, where it is not allowed"
        )
    return table
