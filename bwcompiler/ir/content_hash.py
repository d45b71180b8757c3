"""Content hash of graphs (interim)."""

from __future__ import annotations

import hashlib

from bwcompiler.ir.graph import Graph


def content_hash(graph: Graph) -> str:
    """sha256 of what the graph computes."""
    number: dict[object, int] = {}
    parts = []
    for value in graph.inputs:
        number[value] = len(number)
        parts.append(repr(value.type))
    for value in graph.body:
        number[value] = len(number)
        attrs = [(k, v.hex() if isinstance(v, float) else content_hash(v) if isinstance(v, Graph) else repr(v)) for k, v in value.attrs.items()]
        parts.append(f"{value.op.name}{[number[x] for x in value.operands]}{attrs}{value.type}")
    parts.append(str([number[x] for x in graph.outputs]) + str(graph.captured))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
