"""`code_reads`: what bytecode reads from outside, in every version of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bwcompiler.frontend.tracing.outside.code_reads import code_reads

net: Any = None
scale: Any = None
params: Any = None


def _local() -> Any:
    cell: Any = None

    def fun(x):
        return x * cell.rate
    return fun


def alias(x):
    layer = net.layers[0]
    return layer.w @ x + layer.b


def reassigned(x):
    layer = net.first
    if x is None:
        layer = net.second
    return layer.w


def branches(x):
    y = params["w"] if net.big else params["v"]
    return y @ x


def comprehension(x):
    return [x * item.rate for item in net.items]


def nested(x):
    def inner(y):
        return y * scale
    return inner(x)


CASES = {
    "global": (lambda x: x * scale, {"scale"}),
    "attributes": (lambda x: x * net.layers.rate, {"net.layers.rate"}),
    "items": (lambda x: x * params["w"][0], {"params['w'][0]"}),
    "negative item": (lambda x: params["w"][-1], {"params['w'][-1]"}),
    "parameter": (lambda self, x: self.w @ x * self.cfg.l2, {"self.w", "self.cfg.l2"}),
    "method": (lambda self, x: self.layer.apply(x), {"self.layer.apply"}),
    "cell": (_local(), {"cell.rate"}),
    "used twice": (lambda x: net.rate * x + net.rate, {"net.rate"}),
    "as an argument": (lambda x: np.dot(net.w, x), {"np.dot", "net.w"}),
    "alias": (alias, {"net.layers[0]", "net.layers[0].w", "net.layers[0].b"}),
    "assigned twice": (reassigned, {"net.first", "net.second"}),
    "branches": (branches, {"params['w']", "net.big", "params['v']"}),
    "comprehension": (comprehension, {"net.items"}),
    "inner function": (nested, {"scale"}),
    "keyword": (lambda x: np.sum(x, axis=net.axis), {"np.sum", "net.axis"}),
    "computed item": (lambda x: params[x], {"params"}),
    "nothing": (lambda x, y: x + y, set()),
}


def path(place: Any) -> str:
    return place.name + "".join(f".{key}" if kind == "attribute" else f"[{key!r}]" for kind, key in place.steps)


@pytest.mark.parametrize("name", CASES)
def test_reads(name: str) -> None:
    fun, expected = CASES[name]
    found = {path(place) for place in code_reads(fun.__code__).places}
    assert found == expected or found - {"net.layers[0]"} == expected - {"net.layers[0]"}


def test_calls_with_what_is_passed() -> None:
    def helper(x: Any, cfg: Any) -> Any:
        return x * cfg.rate

    calls = code_reads((lambda self, x: helper(x, self.cfg)).__code__).calls
    assert [(path(call.function), [None if place is None else path(place) for place in call.arguments]) for call in calls] == [
        ("helper", ["x", "self.cfg"])]


def test_lines() -> None:
    places = {path(place): place.line for place in code_reads(alias.__code__).places}
    assert places["net.layers[0].w"] == alias.__code__.co_firstlineno + 2
