"""`checkpoint` in a trace: the function is traced in a separate region, which the op `checkpoint` owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler import ops, tree
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Outer, Traced, region_graph, trace_body
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import fresh, fresh_array
from bwcompiler.ir.op import Record, Value
from bwcompiler.ir.types import DType
from bwcompiler.ops.calls.region import Policy


def checkpointed(fun: Callable[..., Any], policy: Policy, args: Any, kwargs: Any) -> Any:
    """fun(*args, **kwargs), whose values are computed again for a derivative."""
    traced = trace_body(lambda: call_user(fun, args, kwargs), "", str(getattr(fun, "__name__", "function")))
    found = call(_emit, traced, policy)
    kinds: list[Kind] = traced.kinds
    leaves = []
    for value, kind, result in zip(found, kinds, traced.result.result_kinds, strict=True):
        is_array = result == "array" and not value.rank
        leaves.append(fresh_array(value) if is_array else fresh(value, None if isinstance(kind, DType) else kind))
    return tree.unflatten(traced.result.output_tree, leaves)


def _emit(traced: Traced, policy: Policy) -> list[Value]:
    result = traced.result
    outer = Outer([result])
    carried, final, read = outer.inputs(result)
    outputs = [*result.outputs, *final]
    body = region_graph(result, [*carried, *read], Record(), outputs)
    made = ops.checkpoint(*outer.assigned_values(), *outer.read_values(), body=body, policy=policy)
    items = [ops.item(made, index=k) for k in range(len(outputs))]
    outer.assign(items[len(result.outputs):])
    return items[:len(result.outputs)]
