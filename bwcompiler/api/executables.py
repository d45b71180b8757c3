"""Executables of graphs: compiled once per content, shared process-wide."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from bwcompiler import inspect
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.native import make_callback, native_libraries, raise_status
from bwcompiler.compiler.options import dump_folder
from bwcompiler.compiler.pipeline import lower
from bwcompiler.ir.content_hash import content_hash
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.plan import ArgumentKind, CallSignature, Container, Leaf, Tree
from bwcompiler.ir.types import TensorType
from bwcompiler.locks import RenewedLock
from bwcompiler.lowering.polls import POLL
from bwcompiler.passes.expand_custom_rules import inline_calls
from bwcompiler.runtime.executable import Executable
from bwcompiler.runtime.interrupts import poll_address

GIL_BYTES = 1 << 16            # programs that touch less than this keep the GIL: they are done before it could be handed over


@dataclass
class Compiled:
    """An executable with the stages it came from, and the graph it runs for: that one, or one with the same content."""

    lowered: Lowered
    executable: Executable
    graph: Graph

    def raise_error(self, code: int, record: bytes) -> None:
        """Raise what a status code of the program stands for, with the line of the function that was called."""
        own = self.lowered if self.graph is self.lowered.graph else lower(self.graph)
        raise_status(code, record, own.program)


def flat_tree(count: int) -> Tree:
    """A tuple of leaves 0..count-1."""
    return Container("tuple", tuple(Leaf(k) for k in range(count)))


class Executables:
    """The executables used last, bounded by their number and by the memory of what they keep: graphs, stages, text.

    A function holds its own, so dropping one here only means that a new function with the same graph compiles again.
    """

    def __init__(self, count: int = 512, limit: int = 128 * 2**20) -> None:
        self.count = count
        self.limit = limit
        self.size = 0
        self._entries: OrderedDict[tuple[str, CallSignature], tuple[Compiled, int]] = OrderedDict()

    def get(self, key: tuple[str, CallSignature]) -> Compiled | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: tuple[str, CallSignature], compiled: Compiled) -> None:
        """Keep one more, and drop those used longest ago; one that is larger than the limit is kept alone."""
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
    """About the memory an executable keeps alive."""
    return _VALUE_BYTES * len(compiled.lowered.graph) + 2 * len(compiled.lowered.program.text)      # machine code: less than its text


_cache = Executables()
_lock = RenewedLock()


def compile_graph(graph: Graph, arguments: tuple[Tree, ...], kinds: tuple[ArgumentKind, ...], result: Tree,
                  name: str = "compiled") -> Compiled:
    """The executable of a graph whose inputs arrive as `arguments` (leaves in order) and whose outputs leave as `result`.

    Executables are shared process-wide by the graph's content, so a fresh function with the same graph costs no code
    generation.
    """
    graph = inline_calls(graph)
    explicit = len(graph.inputs) - graph.captured
    types: tuple[TensorType, ...] = tuple(value.type for value in graph.inputs)
    result_types = tuple(value.type for value in graph.outputs)
    base = CallSignature(
        arguments, types[:explicit], kinds, types[explicit:], result, result_types,
        tuple("array" if type_.shape else "scalar" for type_ in result_types),
        release_gil=_moves_much(graph))
    key = (content_hash(graph), base)
    with _lock:
        found = _cache.get(key)
        if found is not None:
            return replace(found, graph=graph)
        compiled = _build(graph, base, name)
        _cache.put(key, compiled)
        return compiled


def _moves_much(graph: Graph) -> bool:
    def size(value: Value) -> int:
        return getattr(value.type, "nbytes", GIL_BYTES)
    return max((size(value) for value in graph.values()), default=0) >= GIL_BYTES


def _build(graph: Graph, base: CallSignature, name: str) -> Compiled:
    root = dump_folder()
    dump = inspect.Compilation(root, name, graph) if root is not None else None
    lowered = lower(graph)
    if dump is not None:
        dump.finish(lowered)
    signature = CallSignature(base.arguments, base.argument_types, base.argument_kinds, base.captured_types, base.result,
                              base.result_types, base.result_kinds, lowered.plan.arena_bytes, base.release_gil)
    symbols: dict[str, int] = {}
    keep: list[object] = []
    for number, callback in enumerate(lowered.program.callbacks):
        address, owner = make_callback(number, callback.value)
        symbols[callback.symbol] = address
        keep.append(owner)
    symbols.update(native_libraries()[1])
    if lowered.program.polls:
        symbols[POLL] = poll_address()
    executable = Executable(lowered.program.text, signature, symbols=symbols, keep_alive=tuple(keep), name=name)
    return Compiled(lowered, executable, graph)
