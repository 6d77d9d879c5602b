"""Entries of arrays whose index is not negative.

An index that may be negative counts from the end, so numba adds the length where it is; in code
that goes from table to table that is a large part of all instructions. These two leave it out.
Nothing is checked: an index out of range reads or writes other memory.
"""

# mypy: ignore-errors

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

__all__ = ["at", "put"]


def _place(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def at(context, array, index):
    """array[index], for a one-dimensional contiguous array and an index >= 0."""

    def emit(context, builder, signature, arguments):
        return builder.load(_place(context, builder, signature.args[0], *arguments))

    return array.dtype(array, types.intp), emit


@intrinsic
def put(context, array, index, value):
    """array[index] = value, likewise."""

    def emit(context, builder, signature, arguments):
        builder.store(arguments[2], _place(context, builder, signature.args[0], *arguments[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), emit
