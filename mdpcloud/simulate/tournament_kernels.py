"""A tournament of prices: the first of the cheapest, in O(log n) after a change of one price.

A tree of 2 P numbers, P >= n a power of 2: leaf p is ``tree[P + p]``, a node i above the leaves
holds the lesser of its children 2 i and 2 i + 1, and the root ``tree[1]`` the least price. Leaves
stand in the order in which they win ties; those beyond n are infinite. The winner is the first leaf
within a margin of the root, found on the way down: left wherever the left child is near enough.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.entry_kernels import at, put
from mdpcloud.engine.jit import kernel

__all__ = ["change_price", "tournament", "winner"]


@kernel()
def tournament(prices):
    """Tree (2 P,) of prices (n,) that stand in the order of ties."""
    leaves = 1
    while leaves < prices.size:
        leaves *= 2
    tree = np.full(2 * leaves, np.inf)
    tree[leaves : leaves + prices.size] = prices
    for i in range(leaves - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
    return tree


@kernel(_nrt=False)
def change_price(tree, leaf, price):
    """Give a leaf another price."""
    i = tree.size // 2 + leaf
    put(tree, i, price)
    while i > 1:
        least = min(at(tree, i), at(tree, i ^ 1))
        i >>= 1
        if at(tree, i) == least:
            return
        put(tree, i, least)


@kernel(_nrt=False)
def winner(tree, margin):
    """First leaf whose price is within the margin of the least; -1 where all are infinite."""
    most = at(tree, 1) + margin
    if most == np.inf:
        return -1
    leaves = tree.size // 2
    i = 1
    while i < leaves:
        i *= 2
        if at(tree, i) > most:
            i += 1
    return i - leaves
