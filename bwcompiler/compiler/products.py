"""Native code of matrix products: one module per dtype and target, compiled for the first program that calls it.

Compiling it takes longer than most programs do, so `begin` starts it in a thread of its own as soon as a graph is known to need it: LLVM
works without the interpreter's lock while the program around is made and compiled.  Later processes find the code on disk.
"""

from __future__ import annotations

import contextlib
import functools
import threading

from bwcompiler import ops
from bwcompiler.ir.contracts.program_interface import POLL
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.types import DType
from bwcompiler.lowering.libraries.matrix_products import is_called, is_written_out
from bwcompiler.lowering.products.call import DTYPES, symbol, symbols
from bwcompiler.lowering.products.text import products_text
from bwcompiler.runtime import interrupts, jit, memory_pool, object_cache, threads
from bwcompiler.target import Target

_begun: dict[tuple[DType, Target], threading.Thread] = {}


def begin(graph: Graph, target: Target) -> None:
    """Begin to compile the products that a graph will call."""
    for dtype in _called(graph):
        if (dtype, target) not in _begun:
            thread = _begun[dtype, target] = threading.Thread(target=_code, args=(dtype, target), name="bwcompiler-products")
            with contextlib.suppress(RuntimeError):                 # an interpreter that ends starts no threads: compiled when called
                thread.start()


def addresses(named: frozenset[str], target: Target) -> dict[str, int]:
    """The addresses of the matrix products of which some are named."""
    found: dict[str, int] = {}
    for dtype in DTYPES:
        if not named.isdisjoint(symbols(dtype)):
            found.update(_functions(dtype, target))
    return found


def address(dtype: DType, target: Target) -> int:
    """The address of the products of a dtype, compiled for a target."""
    return _functions(dtype, target)[symbol(dtype)]


@functools.cache
def _functions(dtype: DType, target: Target) -> dict[str, int]:
    """The addresses of all functions of a dtype."""
    thread = _begun.get((dtype, target))
    if thread is not None and thread.is_alive():
        thread.join()
    outside = {**threads.symbols(), POLL: interrupts.poll_address(), **memory_pool.functions()}
    return jit.load_for_ever(_code(dtype, target), outside, symbols(dtype)).addresses


def _code(dtype: DType, target: Target) -> bytes:
    return object_cache.object_for(products_text(dtype, target), target, jit.FINISHED, ahead=True)


def _called(graph: Graph) -> set[DType]:
    """The dtypes of the products in a graph, and in its regions, that are calls."""
    found = set()
    for value in graph.body:
        if value.op is ops.matmul and is_called(value) and not is_written_out(value):
            found.add(value.dtype)
        for region in value.op.regions:
            found |= _called(value.attrs[region])
    return found
