"""Graph: a networkx DAG of values in topological order, with ordered inputs and outputs.

The values themselves are the networkx nodes; operand positions live on the value (`x * x` is one edge).  Adjacency is
built in bulk on first use, and networkx imported then (`late_base`), so passes that only need the order never pay for it.
Graphs are immutable.

What networkx derives from a graph (`graph.copy()`, `.reverse()`, `.subgraph(values)`, `nx.relabel_nodes` ...) need not be a
graph with inputs and outputs in order; it is a plain `nx.DiGraph` of the same values, which may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.late_base import LateDiGraph, nx
from bwcompiler.ir.op import Record, Value, current_record


def _read_only(*_: Any, **__: Any) -> Any:
    raise InternalError("graphs are immutable; build a new one")


class Graph(LateDiGraph):
    """A DAG of values.

    inputs    the arguments, in order; the last `captured` of them are arrays bound by reference when traced.
    body      every other value, topologically ordered.
    outputs   the results, in order; an input may be an output, and a value may be one twice.
    index     the loop index a region graph is evaluated under, if any.
    settled   passes and tables of rules that leave it as it is: bodies of loops are looked at again with each graph around them.
    verified  the loop indices under which it was found valid, as a region: it is not verified again with each graph around it.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """networkx makes what it derives from a graph by calling the graph's class without arguments."""
        return super().__new__(cls) if args or kwargs else nx.DiGraph()

    def __init__(self, name: str, inputs: Iterable[Value], body: Iterable[Value], outputs: Iterable[Value],
                 index: Index | None = None, captured: int = 0) -> None:
        self.graph = {"name": name}
        self.inputs: tuple[Value, ...] = tuple(inputs)
        self.body: tuple[Value, ...] = tuple(body)
        self.outputs: tuple[Value, ...] = tuple(outputs)
        self.index = index
        self.captured = captured
        self.settled: list[object] = []
        self.verified: set[frozenset[Index]] = set()
        self._adjacency: tuple[dict[Value, Any], dict[Value, Any], dict[Value, Any]] | None = None
        self._readers: dict[Value, list[Value | None]] | None = None
        self.__networkx_cache__: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.graph["name"]

    def is_settled(self, by: object) -> bool:
        """Whether a pass, or a table of rules, is known to leave the graph unchanged."""
        return any(one is by for one in self.settled)

    def _build(self) -> tuple[dict[Value, Any], dict[Value, Any], dict[Value, Any]]:
        if self._adjacency is None:
            nodes: dict[Value, Any] = {value: {} for value in self.inputs}
            nodes.update((value, {}) for value in self.body)
            successors: dict[Value, Any] = {value: {} for value in nodes}
            predecessors: dict[Value, Any] = {value: {} for value in nodes}
            for value in self.body:
                mine = predecessors[value]
                for operand in value.operands:
                    edge: dict[str, Any] = {}
                    successors[operand][value] = edge
                    mine[operand] = edge
            self._adjacency = (nodes, successors, predecessors)
        return self._adjacency

    # networkx reads these four; it finds them built when it first asks.
    @property
    def _node(self) -> dict[Value, Any]:
        return self._build()[0]

    @property
    def _adj(self) -> dict[Value, Any]:
        return self._build()[1]

    @property
    def _succ(self) -> dict[Value, Any]:
        return self._build()[1]

    @property
    def _pred(self) -> dict[Value, Any]:
        return self._build()[2]

    add_node = add_nodes_from = remove_node = remove_nodes_from = _read_only
    add_edge = add_edges_from = remove_edge = remove_edges_from = clear = clear_edges = _read_only

    def values(self) -> Iterator[Value]:
        """Inputs, then the body."""
        yield from self.inputs
        yield from self.body

    def users(self) -> dict[Value, list[Value]]:
        """For every value the body values that read it (each once per operand position)."""
        found: dict[Value, list[Value]] = {value: [] for value in self.values()}
        for value in self.body:
            for operand in value.operands:
                found[operand].append(value)
        return found

    def readers(self) -> Mapping[Value, Sequence[Value | None]]:
        """What reads each value that is read, once per operand position; None for an output.  Passes share it: it is not to be changed."""
        if self._readers is None:
            self._readers = readers_of(self.body, self.outputs)
        return self._readers

    def read_once(self) -> set[Value]:
        """The values that are read exactly once, and are not outputs."""
        return {value for value, found in self.readers().items() if len(found) == 1 and found[0] is not None}

    def __len__(self) -> int:
        return len(self.inputs) + len(self.body)

    def __str__(self) -> str:
        return f"Graph {self.name!r}: {len(self.inputs)} inputs, {len(self.body)} nodes, {len(self.outputs)} outputs"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Graph, (self.name, self.inputs, self.body, self.outputs, self.index, self.captured))

    def replace(self, *, inputs: Iterable[Value] | None = None, body: Iterable[Value] | None = None,
                outputs: Iterable[Value] | None = None, name: str | None = None, captured: int | None = None) -> Graph:
        """A new graph with some parts exchanged."""
        return Graph(self.name if name is None else name, self.inputs if inputs is None else inputs,
                     self.body if body is None else body, self.outputs if outputs is None else outputs, self.index,
                     self.captured if captured is None else captured)


def readers_of(values: Iterable[Value], outputs: Iterable[Value]) -> dict[Value, list[Value | None]]:
    """What reads each value, once per operand; None for a result."""
    found: dict[Value, list[Value | None]] = {}
    for value in values:
        for operand in value.operands:
            found.setdefault(operand, []).append(value)
    for output in outputs:
        found.setdefault(output, []).append(None)
    return found


def all_values(graph: Graph) -> Iterator[Value]:
    """The values that a graph computes, and those of the bodies of its loops and branches."""
    for value in graph.body:
        yield value
        for region in value.op.regions:
            yield from all_values(value.attrs[region])


def live_values(body: Sequence[Value], outputs: Iterable[Value]) -> list[Value]:
    """The values of `body` that the outputs depend on (or that have effects), in the same order."""
    needed: set[Value] = set(outputs)
    kept: list[Value] = []
    for value in reversed(body):
        if value in needed or not value.op.pure:
            kept.append(value)
            needed.update(value.operands)
    kept.reverse()
    return kept


def cut(name: str, inputs: Sequence[Value], record: Sequence[Value], outputs: Sequence[Value], *,
        index: Index | None = None, captured: int = 0) -> Graph:
    """The graph of those values of a record that `outputs` depend on."""
    return Graph(name, inputs, live_values(record, outputs), outputs, index, captured)


def _again(record: Record, value: Value, operands: tuple[Value, ...]) -> Value:
    return record.emit(value.op, operands, value.attrs, value.type)


def inline(graph: Graph, operands: Sequence[Value], emit: Callable[[Record, Value, tuple[Value, ...]], Value] = _again) -> list[Value]:
    """Re-emit a graph's body into the current record with its inputs replaced; returns the values of its outputs.

    Names and provenance are kept; values without provenance get the record's.  `emit(record, value, operands)` makes the copy of a value.
    """
    record = current_record()
    if record is None:
        raise InternalError(f"{graph.name} is inlined outside of any record")
    mapping: dict[Value, Value] = dict(zip(graph.inputs, operands, strict=True))
    source, forward = record.source, record.forward
    try:
        for value in graph.body:
            record.source = value.source or source
            record.forward = forward if value.forward is None else mapping.get(value.forward, value.forward)
            made = emit(record, value, tuple([mapping[operand] for operand in value.operands]))
            if made.name is None:
                made.name = value.name
            mapping[value] = made
    finally:
        record.source, record.forward = source, forward
    return [mapping[output] for output in graph.outputs]
