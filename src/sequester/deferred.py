"""What is used of SciPy by modules that every command loads: SciPy itself is loaded when one of these is first called.

Many a release is certified without a flow or a linear program, and then a quarter of a second is spared.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult as OptimizeResult
    from scipy.optimize import linprog as linprog
    from scipy.sparse import coo_array as coo_array
    from scipy.sparse import csc_array as csc_array
    from scipy.sparse import csr_array as csr_array
    from scipy.sparse import csr_matrix as csr_matrix
    from scipy.sparse import hstack as hstack
    from scipy.sparse import vstack as vstack
    from scipy.sparse.csgraph import breadth_first_order as breadth_first_order
    from scipy.sparse.csgraph import connected_components as connected_components
    from scipy.sparse.csgraph import maximum_flow as maximum_flow
else:

    def _deferred(module: str, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(import_module(module), name)(*args, **kwargs)

        return call

    OptimizeResult, linprog = (_deferred("scipy.optimize", name) for name in ("OptimizeResult", "linprog"))
    coo_array, csc_array, csr_array, csr_matrix, hstack, vstack = (
        _deferred("scipy.sparse", name)
        for name in ("coo_array", "csc_array", "csr_array", "csr_matrix", "hstack", "vstack")
    )
    breadth_first_order, connected_components, maximum_flow = (
        _deferred("scipy.sparse.csgraph", name)
        for name in ("breadth_first_order", "connected_components", "maximum_flow")
    )
