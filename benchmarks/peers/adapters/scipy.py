"""scipy's action of the matrix exponential, what a researcher without a package would take."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import expm_multiply

from benchmarks.peers.instance import Chain

__all__ = ["transient"]


def transient(instance: Chain) -> dict[str, Any]:
    shape = (instance.states, instance.states)
    moves = sparse.csr_array((instance.data, instance.indices, instance.indptr), shape=shape)
    generator = moves - sparse.diags_array(np.asarray(moves.sum(axis=1)), format="csr")
    start = np.zeros(instance.states)
    start[instance.start] = 1.0
    law = expm_multiply(generator.T * instance.time, start)
    return {"probability": float(law[instance.inside].sum())}
