"""The code that programs call: background threads compile it while the program itself is still made."""

from __future__ import annotations

from bwcompiler.compiler import native, products
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.types import DType
from bwcompiler.runtime import blas_calls
from bwcompiler.target import Target


def begin(graph: Graph, target: Target) -> None:
    """Start compiling what the program of a graph will call: matrix products, and the wrappers around BLAS."""
    dtypes: set[DType] = set()
    blas = False
    for value in all_values(graph):
        if products.is_product_call(value):
            dtypes.add(value.dtype)
        blas = blas or native.calls_blas(value)
    for dtype in dtypes:
        products.begin(dtype, target)
    if blas:
        blas_calls.begin()
