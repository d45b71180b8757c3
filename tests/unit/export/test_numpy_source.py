"""Programs as NumPy modules: every op has an expression that computes it; whole modules agree with native code."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
import bwcompiler.scipy.special as special
from bwcompiler import nn, tree
from bwcompiler.errors import UnsupportedError
from bwcompiler.export.numpy_source import array_text, graph_source, program_source
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import REGISTRY, Record, input_value, item
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, tensor
from bwcompiler.ops.calls.region import loop
from bwcompiler.ops.layout import slice_, slice_update
from bwcompiler.ops.numpy_text import float_text, index_text, rule_of
from tests.support.source import from_text
from tests.unit.ir import region_graphs

OP_TESTS = Path(__file__).parent.parent / "ops"


def execute(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "<exported>", "exec"), namespace)
    return namespace


# ----- every op
def op_cases():
    for path in sorted(OP_TESTS.rglob("test_*.py")):
        if path.name == "test_every_op.py":
            continue
        spec = importlib.util.spec_from_file_location(f"source_cases_of_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for number, row in enumerate(getattr(module, "CASES", ())):
            if row.op.name == "callback":          # a Python function, which is not NumPy source
                continue
            yield pytest.param(row, id=f"{path.stem}-{number}-{row}")


def test_every_op_has_an_expression():
    declared = {name: op for name, op in REGISTRY.items() if op.shape.__module__.startswith("bwcompiler")}    # not those of tests
    written = {name for name, op in declared.items() if rule_of(op) is not None}
    assert set(declared) - written == {"input", "loop", "while_loop", "cond", "custom_call", "custom_link", "region_link", "checkpoint"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", list(op_cases()))
def test_expression_computes_the_op(row):
    program = row.program()
    graph = Graph("op", program.inputs, program.record.values, program.outputs)
    found = np.asarray(execute(graph_source(graph))["op"](*row.arrays))
    expected = row.reference(*row.arrays)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-12 if expected.dtype.itemsize > 4 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# ----- whole functions
@dataclass
class Layer:
    w: Any
    b: Any


@bw.custom_vjp
def clipped(x):
    return np.exp(x)


clipped.defvjp(lambda x: (np.exp(x), np.exp(x)), lambda residual, ct: (np.clip(ct * residual, -1.0, 1.0),))
R = np.random.default_rng(7)
A, B, V, M = R.normal(size=(4, 3)), R.normal(size=(3, 5)), R.normal(size=6), R.normal(size=(3, 3))
TABLE, ROWS, IMAGE = R.normal(size=(5, 2)), np.array([0, 4, 4, -2]), R.normal(size=(2, 2, 6, 6))
KERNEL, SPD, POSITIVE = R.normal(size=(3, 2, 3, 3)), M @ M.T + 3 * np.eye(3), R.uniform(0.2, 2.0, size=(3, 4))
CONSTANTS = {"big": R.normal(size=2000), "small": np.array([1.0, np.inf, -0.0])}


def mlp(params, x):
    hidden = np.tanh(x @ params["w"] + params["b"])
    return np.mean(hidden**2)


def dataclass_and_scalar(layer, x, rate):
    return np.sum(rate * (x @ layer.w + layer.b))


def assigned(x):
    y = np.zeros_like(x, shape=(4, 5))
    y[1:-1, ::2] = x[:2]
    y[:, 1] += x[:, 0]
    return np.sum(y * y)


def several(x, y):
    return {"product": x * y, "count": np.argmax(x), "pair": (x.sum(), np.maximum(x, y))}


def accumulated(x):
    total = np.zeros_like(x, shape=5)
    np.add.at(total, ROWS, x)
    total[ROWS[:2]] = x[2:]
    return np.sum(total**3)


def history(x):
    y = np.zeros(20)
    y[0] = x[0]
    for i in range(1, 20):
        y[i] = np.sin(y[i - 1]) + 0.5 * x[i % 6]
    return y.sum() * y[7]


def old_contents(x):
    """What an array held before an update is used after it."""
    y, total = x.copy(), 0.0
    for i in range(12):
        before = y[:3].copy()
        y[i % 6] = before.sum() * 0.3
        total += before[0] * y[0] * x[i % 6]
    return total + y.sum()


def swapped(x):
    a, b = x.copy(), 2 * x
    for i in range(12):
        a[i % 6] = np.cos(b[0]) * a[i % 6]
        a, b = b, a
    return np.sum(a * b * x)


def shifted(x):
    y = x.copy()
    for i in range(12):
        y[1:] = 0.9 * y[:-1]
        y[0] = y[5] + x[i % 6]
        y[i % 3] += y[3]
    return y


def rows(x):
    a = x.copy()
    for i in range(12):
        a[i % 3] = a[2] * 0.5
        a[1] = a[i % 3] + x[1]
    return a


def triangular(a):
    n = len(a)
    l = np.zeros((n, n))  # noqa: E741
    for i in range(n):
        for j in range(i):
            l[i, j] = (a[i, j] - l[i, :j] @ l[j, :j]) / l[j, j]
        l[i, i] = np.sqrt(a[i, i] - l[i, :i] @ l[i, :i])
    return l


def until(x):
    y, k = np.zeros(6), 0
    while y.sum() < 5.0 and k < 50:
        y[k % 6] += np.exp(x[k % 6])
        k += 1
    return np.sum(y * x) if k > 3 else y[0]


def grown(x):
    while x < 10.0:
        x = x * x + 0.1 if x > 1.0 else x + 0.5
    return x


FUNCTIONS = {
    "history": (history, V),
    "old_contents": (old_contents, V),
    "swapped": (swapped, V),
    "shifted": (shifted, V),
    "rows": (rows, M),
    "triangular": (triangular, SPD),
    "triangular, larger": (triangular, np.eye(11) + 0.05),
    "until": (until, V),
    "grown": (grown, 0.3),
    "mlp": (mlp, {"w": A.T[:3, :3], "b": V[:3]}, A),
    "dataclass_and_scalar": (dataclass_and_scalar, Layer(A.T, V[:4]), B.T, 0.5),
    "matmul": (lambda x, y: x @ y, A, B),
    "broadcasting": (lambda x, v: (x + v[:, None]) * v.sum(), A, V[:4]),
    "where": (lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x**3).sum(), A),
    "logsumexp": (lambda x: special.logsumexp(x, axis=1).sum(), A),
    "softmax": (lambda x: special.softmax(x, axis=0), A),
    "slices": (lambda x: x[1:-1, ::2] * x[::-1][:2, 1:].sum(), A),
    "assigned": (assigned, A),
    "concatenate_and_pad": (lambda x, y: np.pad(np.concatenate([x, y.T[:2]]), ((1, 0), (0, 2))) ** 2, A, B),
    "transposed": (lambda x: np.transpose(x, (2, 0, 1)).reshape(-1).cumsum(), IMAGE[0]),
    "gather": (lambda t: np.tanh(t[ROWS]).sum(), TABLE),
    "gather_last": (lambda t: t[:, ROWS % 2], TABLE),
    "accumulated": (accumulated, V[:4]),
    "products": (lambda x: np.prod(x, axis=1) + np.cumprod(x, axis=1)[:, -1], A),
    "extrema": (lambda x: np.max(x, axis=0) - np.min(x) + np.std(x), A),
    "conv2d": (lambda x, k: np.mean(nn.conv2d(x, k, padding=1, stride=2) ** 2), IMAGE, KERNEL),
    "max_pool2d": (lambda x: nn.max_pool2d(x, 2).sum(), IMAGE),
    "solve": (lambda a, b: np.sum(np.linalg.solve(a, b)), SPD, M),
    "cholesky": (lambda a: np.sum(np.linalg.cholesky(a @ a.T)), SPD),
    "determinant_by_inverse": (lambda a: np.trace(np.linalg.inv(a)), SPD),
    "special": (lambda x: np.sum(special.erf(x) * special.gammaln(x) + special.digamma(x) + special.erfinv(np.tanh(x))), POSITIVE),
    "layer_norm": (lambda x: nn.layer_norm(x, 3).sum(axis=0), A),
    "cross_entropy": (lambda x: nn.cross_entropy(x, np.array([0, 2, 1, 1])), A),
    "captured": (lambda x: np.sum(x * CONSTANTS["big"][:6] + CONSTANTS["small"][0]), V),
    "custom_vjp": (lambda x: np.sum(clipped(x) * x), V),
    "several": (several, V, V[::-1].copy()),
    "float32": (lambda x: np.mean(np.logaddexp(x, 0) / np.sqrt(2.0)), A.astype(np.float32)),
    "integers": (lambda x, n: np.sum(x[: n.shape[0]] * n), V, np.array([1, 2, 3])),
    "unused": (lambda x, y: np.sum(x), V, V),
    "constant": (lambda x: np.ones(3), V),
    "identity": (lambda x: x, V),
}


def test_loops_copy_no_stacks() -> None:
    """What a derivative keeps of each iteration is written into one array."""
    def steps(x):
        for _ in range(100):
            x = x * np.sin(x)
        return x

    source = program_source(bw.compile(steps, 0.5))
    assert "[i:i + 1] = " in source and "copy" not in source


def assert_same_tree(found, expected):
    found, expected = tree.leaves(found), tree.leaves(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, np.generic) == isinstance(other, np.generic)
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = 1e-10 if one.dtype.itemsize > 4 else 1e-5
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_module_agrees_with_native_code(name, rng):
    fun, *args = FUNCTIONS[name]
    program = bw.compile(fun, *args)
    source = program_source(program)
    module = execute(source)
    out, residuals = module["forward"](*args)
    native = program(*args)
    assert_same_tree(out, native)
    seeded = tree.map(lambda leaf: rng.normal(size=np.shape(leaf)).astype(leaf.dtype) if leaf.dtype.kind in "fc" else None,
                      tree.map(np.asarray, native))
    found = module["backward"](residuals, *tree.leaves(seeded))
    expected = program.backward(*args, grad_outputs=seeded)
    assert len(found) == len(args)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert_same_tree(one, vars(other) if isinstance(other, Layer) else other)
    scalar = np.shape(native) == () and not isinstance(native, tuple | dict)
    out, again = module["value_and_grad"](*args, *([] if scalar else tree.leaves(seeded)))
    assert_same_tree(out, native)
    assert_same_tree(again[-1], program.backward(*args)[-1] if scalar else found[-1])


LAYERS = """
import numpy as np

def layers(params, x):
    hidden = x
    for w, b in params:
        before = hidden @ w + b
        hidden = np.maximum(before, 0)
    loss = np.mean(hidden**2)
    return loss
"""


def test_module_reads_well(golden):
    layers = from_text(LAYERS, "layers")
    golden(program_source(bw.compile(layers, [(A.T, V[:4]), (A, V[:3])], A)), "py")


def test_module_imports_only_numpy_and_what_helpers_need():
    for name, extra in (("mlp", set()), ("special", {"math"}), ("conv2d", {"itertools"})):
        fun, *args = FUNCTIONS[name]
        imports = [node for node in ast.walk(ast.parse(program_source(bw.compile(fun, *args)))) if isinstance(node, ast.Import)]
        assert {alias.name for node in imports for alias in node.names} == {"numpy", *extra}


def test_names_are_the_users_and_no_keywords_or_builtins():
    source = program_source(bw.compile(lambda sum, lambda_, out: np.sum(np.sum(sum, axis=0) * lambda_ + out), A, V[:3], 1.0))
    assert "def forward(sum_, lambda_, out_1):" in source
    assert " sum_1 = np.sum(sum_, axis=0)" in source


def test_results_are_not_read_only():
    module = execute(program_source(bw.compile(np.sum, A)))
    _, (gradient,) = module["value_and_grad"](A)
    gradient += 1.0
    np.testing.assert_array_equal(gradient, np.full(A.shape, 2.0))


def test_wrt():
    module = execute(program_source(bw.compile(lambda x, y: x @ y, A, B, wrt=1)))
    out, residuals = module["forward"](A, B)
    first, second = module["backward"](residuals, np.ones_like(out))
    assert first is None and second.shape == B.shape


@pytest.mark.parametrize(("index", "text"), [
    (np.s_[1:-1, ::2], "[1:-1, ::2]"), (np.s_[:2, :], "[:2]"), (np.s_[::-1, 1:], "[::-1, 1:]"), (np.s_[:, 4:1:-2], "[:, :1:-2]"),
    (np.s_[3:2, 1:2], "[0:0, 1:2]"), (np.s_[:, :], "[:]"), (np.s_[2::-1, 1::3], "[2::-1, 1::3]"), (np.s_[:-1, :], "[:-1]"),
])
def test_index_text(index, text):
    x = np.arange(30).reshape(6, 5)
    ranges = [range(extent)[part] for extent, part in zip(x.shape, index, strict=True)]
    found = index_text(x.shape, [r.start for r in ranges], [len(r) for r in ranges], [r.step for r in ranges])
    assert found == text
    np.testing.assert_array_equal(eval(f"x{found}"), x[index])


@pytest.mark.parametrize("array", [np.array([1.5, np.nan, -np.inf, -0.0]), np.zeros((0, 3)), np.array(2, np.int8), np.array([True]),
                                   R.normal(size=2000), np.array([1 + 2j, np.nan]), np.float32([0.1])], ids=str)
def test_array_text(array):
    found = eval(array_text(array), {"np": np, "bytes": bytes})
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_float_text():
    assert [float_text(x) for x in (0.1, -np.inf, np.nan)] == ["0.1", "-np.inf", "np.nan"]


def test_op_without_expression_is_refused(monkeypatch):
    monkeypatch.setattr("bwcompiler.export.numpy_statements.rule_of", lambda op: None)
    with pytest.raises(UnsupportedError, match="sigmoid cannot be written as NumPy source"):
        program_source(bw.compile(nn.sigmoid, V))


# ----- regions
def moving_parts():
    """A triangular loop whose body reads, from its end, and writes parts of arrays that depend on the index."""
    index = Index(0, 3)
    start = index.extent()
    total, x = input_value(tensor(F64, (8,)), "total"), input_value(tensor(F64, (10,)), "x")
    with Record() as record:
        backwards = slice_(x, starts=(start + 3,), sizes=(start + 1,), steps=(-1,))
        every_second = slice_(x, starts=(start,), sizes=(start + 1,), steps=(2,))
        out = slice_update(total, backwards * every_second, starts=(start,), steps=(1,))
    body = cut("body", [total, x], record.values, [out], index=index)
    total, y = input_value(tensor(F64, (8,)), "total"), input_value(tensor(F64, (10,)), "y")
    with Record() as record:
        result = item(loop(total, y, lo=0, hi=3, step=-1, carried=1, body=body), index=0)
    return cut("moving", [total, y], record.values, [result])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("build", [*region_graphs.ALL, moving_parts], ids=lambda build: build.__name__)
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_regions_compute_what_the_interpreter_does(build, shift, rng):
    graph = build()
    arrays = [np.asarray(rng.uniform(0.5, 1.0, value.shape) + shift * k).astype(value.dtype.numpy) for k, value in enumerate(graph.inputs)]
    found = execute(graph_source(graph))[graph.name](*arrays)
    np.testing.assert_allclose(found, interpret(graph, arrays)[0], rtol=1e-13)


def test_regions_read_well(golden):
    for build in (moving_parts, region_graphs.nested_loop, region_graphs.while_graph, region_graphs.cond_graph):
        golden(graph_source(build()), build.__name__)
