"""Legalisation: rewrite ops into the subset that lowering accepts.

    windows(x, low, high)      -> windows(pad(x))             so that reading a window is a plain index map
    windows_add(ct, low, high) -> slice(windows_add(ct))      into the padded array
    custom_call, custom_link   -> their bodies
"""

from __future__ import annotations

from typing import Any

from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import REGISTRY, Record, Value
from bwcompiler.passes.expand_custom_rules import inline_calls


def legalize(graph: Graph) -> Graph:
    """The same computation in ops that lowering accepts."""
    graph = inline_calls(graph)
    if not any(_is_padded(value) for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple(mapping.get(operand, operand) for operand in value.operands)
            if _is_padded(value):
                record.source, record.forward = value.source, value.forward
                mapping[value] = _unpadded(value, operands[0], **value.attrs)
            elif operands != value.operands:
                mapping[value] = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
                record.values.append(mapping[value])
            else:
                record.values.append(value)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)


def _is_padded(value: Value) -> bool:
    return value.op.name in ("windows", "windows_add") and any((*value.attrs["low"], *value.attrs["high"]))


def _unpadded(value: Value, x: Value, *, low: tuple[int, ...], high: tuple[int, ...], **attrs: Any) -> Value:
    none = (0,) * len(low)
    lead = value.rank - len(low) if value.op.name == "windows_add" else x.rank - len(low)
    if value.op.name == "windows":
        zero = False if x.dtype.kind == "b" else 0.0 if x.dtype.is_differentiable else 0
        padded = REGISTRY["pad"](x, low=(0,) * lead + low, high=(0,) * lead + high, value=zero)
        return REGISTRY["windows"](padded, low=none, high=none, **attrs)
    shape = attrs.pop("shape")
    wide = (*shape[:lead], *[extent + a + b for extent, a, b in zip(shape[lead:], low, high, strict=True)])
    added = REGISTRY["windows_add"](x, shape=wide, low=none, high=none, **attrs)
    return REGISTRY["slice"](added, starts=(0,) * lead + low, sizes=shape, steps=(1,) * len(shape))
