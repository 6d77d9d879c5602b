"""Five instructions from which fused sweeps are written, so that their loops turn into vector code.

Numba's own forms keep LLVM from it: signed indices are checked for wrap-around, the many sources of
a sweep are each checked for overlap with its target, minima of floats and conditions become
branches. Here an index counts from the front, `load` and `store` never concern the same array (the
two are marked so), `least` and `most` never meet nan, and `choose` evaluates both values.
"""

# mypy: ignore-errors

from __future__ import annotations

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["FAR", "FAST", "choose", "least", "load", "most", "store"]

FAR = 1e300  # value of cells outside the space; no minimum ever takes it
FAST = {"nnan", "nsz", "arcp", "contract", "afn", "reassoc"}


def _place(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _mark(instruction, name, module):
    """Say that loads do not overlap with stores (LLVM's alias.scope and noalias metadata)."""
    scope = module.add_metadata(["read by a sweep", module.add_metadata(["mdpcloud"])])
    instruction.set_metadata(name, module.add_metadata([scope]))


@intrinsic
def load(context, array, index):
    """array[index], for a one-dimensional array."""

    def emit(context, builder, signature, arguments):
        value = builder.load(_place(context, builder, signature.args[0], *arguments))
        _mark(value, "alias.scope", builder.module)
        return value

    return array.dtype(array, types.intp), emit


@intrinsic
def store(context, array, index, value):
    """array[index] = value, for a one-dimensional array that is not read."""

    def emit(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments[:2])
        _mark(builder.store(arguments[2], place), "noalias", builder.module)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), emit


def _extremum(name):
    def typed(context, one, other):
        def emit(context, builder, signature, arguments):
            kind = arguments[0].type
            function = builder.module.declare_intrinsic(
                name, [kind], ir.FunctionType(kind, [kind, kind])
            )
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), emit

    return intrinsic(typed)


least = _extremum("llvm.minnum")
most = _extremum("llvm.maxnum")


@intrinsic
def choose(context, condition, value, otherwise):
    """Value where the condition holds, else otherwise."""

    def emit(context, builder, signature, arguments):
        return builder.select(*arguments)

    return types.float64(types.boolean, types.float64, types.float64), emit


if numba.config.DISABLE_JIT:  # the same in Python, for coverage
    least, most = min, max

    def load(array, index):
        """array[index]."""
        return array[index]

    def store(array, index, value):
        """array[index] = value."""
        array[index] = value

    def choose(condition, value, otherwise):
        """Value where the condition holds, else otherwise."""
        return value if condition else otherwise
