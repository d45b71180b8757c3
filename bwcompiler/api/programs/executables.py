"""Executables of graphs: compiled once per graph content and target, and shared process-wide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bwcompiler import inspect
from bwcompiler.api.programs.arguments.forms import flat_tree
from bwcompiler.compiler import called_code, products
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.native import loops_named_in, make_callback, native_addresses, raise_status
from bwcompiler.compiler.options import dump_folder
from bwcompiler.compiler.pipeline import lower
from bwcompiler.compiler.progress import progress
from bwcompiler.errors import InternalError
from bwcompiler.frontend.tracing.refusals.handlers import tell_of_handler
from bwcompiler.frontend.tracing.refusals.tracebacks import user_traceback
from bwcompiler.ir.contracts.call_signature import ArgumentKind, CallSignature, Leaf, ResultKind
from bwcompiler.ir.contracts.program_interface import PARALLEL, POLL
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.types import TensorType, TupleType
from bwcompiler.locks import RenewedLock
from bwcompiler.lowering.program import ProgramText
from bwcompiler.runtime import threads
from bwcompiler.runtime.executable import Executable
from bwcompiler.runtime.interrupts import poll_address
from bwcompiler.runtime.program_parts import ProgramParts
from bwcompiler.target import Target, current_target

GIL_BYTES = 1 << 16            # a program with an array of at least this size releases the GIL

Into = tuple[int | None, ...]  # per result: the input whose memory it is written to


@dataclass
class Compiled:
    """An executable with its stages, and the graph that it is used for: the compiled one, or another with the same content."""

    lowered: Lowered
    executable: Executable
    graph: Graph

    def raise_error(self, code: int, record: bytes) -> None:
        """Raise the exception that a status code of the program stands for, at the line of the function that was called."""
        own = self.lowered if self.graph is self.lowered.graph else lower(self.graph, self.lowered.into, self.lowered.target)
        try:
            raise_status(code, record, own)
        except InternalError:
            raise
        except Exception as error:                 # an exception of the user's function, raised at its line
            tell_of_handler(error)
            error.with_traceback(user_traceback(error.__traceback__))
            raise

    @property
    def signature(self) -> CallSignature:
        """The signature of a call with all inputs as positional arguments that returns a tuple."""
        return self.executable.signature


class Executables:
    """LRU cache of executables, bounded by their number and by the memory of their graphs, stages and text.

    A function holds its own, so dropping one here only means that a new function with the same graph compiles again.
    """

    def __init__(self, count: int = 512, limit: int = 128 * 2**20) -> None:
        self.count = count
        self.limit = limit
        self.size = 0
        self._entries: OrderedDict[tuple[str, Into, Target], tuple[Compiled, int]] = OrderedDict()

    def get(self, key: tuple[str, Into, Target]) -> Compiled | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: tuple[str, Into, Target], compiled: Compiled) -> None:
        """Add one, and drop the least recently used; one that is larger than the limit is kept alone."""
        size = kept_bytes(compiled)
        self._entries[key] = (compiled, size)
        self.size += size
        while len(self._entries) > 1 and (len(self._entries) > self.count or self.size > self.limit):
            self.size -= self._entries.popitem(last=False)[1][1]

    def clear(self) -> None:
        self._entries.clear()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)


_VALUE_BYTES = 2000            # per value of the graph, in all stages up to loops (1,000 to 1,700 measured)


def kept_bytes(compiled: Compiled) -> int:
    """Estimated bytes that an executable keeps alive."""
    return _VALUE_BYTES * _values_in(compiled.lowered.graph, set()) + 2 * len(compiled.lowered.program.text)     # machine code is smaller


def _values_in(graph: Graph, seen: set[int]) -> int:
    """How many values a graph has, those of the bodies of its loops and branches included; several loops may have one body."""
    if id(graph) in seen:
        return 0
    seen.add(id(graph))
    return len(graph) + sum([_values_in(value.attrs[region], seen) for value in graph.body for region in value.op.regions])


_cache = Executables()
_lock = RenewedLock()


def compile_graph(graph: Graph, into: Sequence[int | None] = (), name: str = "compiled") -> Compiled:
    """The executable of a graph; result k is written to the memory of input into[k], unless that is None.

    Executables are shared process-wide by the graph's content and the current target, so a fresh function with the same
    graph costs no code generation.
    """
    places = tuple(into) if any(number is not None for number in into) else ()
    target = current_target()
    key = (content_hash(graph), places, target)
    with _lock:
        found = _cache.get(key)
        if found is not None:
            return replace(found, graph=graph)
        with progress(name, len(graph.body)):
            compiled = _build(graph, places, name, target)
        _cache.put(key, compiled)
        return compiled


def _releases_lock(graph: Graph, program: ProgramText) -> bool:
    """Whether calls release the GIL: the program has a large array, or polls for signals (loops with many iterations, or an unknown
    number of them).  Other programs finish before another thread could take over.
    """
    def size(value: Value) -> int:
        return sum(item.nbytes for item in value.type.items) if isinstance(value.type, TupleType) else value.type.nbytes
    return POLL in program.symbols or max((size(value) for value in graph.values()), default=0) >= GIL_BYTES


def _signature(graph: Graph, into: Into, arena_bytes: int, release_gil: bool) -> CallSignature:
    explicit = len(graph.inputs) - graph.captured
    types: tuple[TensorType, ...] = tuple([value.type for value in graph.inputs])
    results = tuple([value.type for value in graph.outputs])
    kinds: tuple[ResultKind, ...] = tuple(["array" if type_.shape else "scalar" for type_ in results])
    arrays: tuple[ArgumentKind, ...] = tuple(["array" for _ in range(explicit)])
    return CallSignature(
        tuple([Leaf(k) for k in range(explicit)]), types[:explicit], arrays, types[explicit:],
        flat_tree(len(results)), results, kinds, arena_bytes, release_gil, result_into=into)


def _build(graph: Graph, into: Into, name: str, target: Target) -> Compiled:
    root = dump_folder()
    dump = inspect.Compilation(root, name, graph) if root is not None else None
    called_code.begin(graph, target)
    parts = ProgramParts(target)
    lowered = lower(graph, into, target, begin=parts.begin)
    products.begin_named(lowered.program.symbols, target)
    if PARALLEL in lowered.program.symbols:
        threads.begin()
    if dump is not None:
        dump.finish(lowered)
    callbacks, keep = _callbacks(lowered.program)

    def symbols() -> dict[str, int]:
        return {**callbacks, **_addresses(lowered, target)}

    signature = _signature(graph, into, lowered.plan.arena_bytes, _releases_lock(graph, lowered.program))
    executable = Executable(lowered.program.text, signature, symbols=symbols, keep_alive=keep, target=target, parts=parts)
    return Compiled(lowered, executable, graph)


def _callbacks(program: ProgramText) -> tuple[dict[str, int], tuple[object, ...]]:
    """Addresses of the Python functions that a program calls, and the objects that keep them alive."""
    addresses: dict[str, int] = {}
    owners: list[object] = []
    for number, callback in enumerate(program.callbacks):
        addresses[callback.symbol], owner = make_callback(number, callback)
        owners.append(owner)
    return addresses, tuple(owners)


def _addresses(lowered: Lowered, target: Target) -> dict[str, int]:
    """Addresses of the native functions that a program calls."""
    symbols = lowered.program.symbols
    found = {**native_addresses(symbols), **loops_named_in(lowered.simplified), **products.addresses(symbols, target)}
    if POLL in symbols:
        found[POLL] = poll_address()
    if PARALLEL in symbols:
        found.update(threads.symbols())
    return found
