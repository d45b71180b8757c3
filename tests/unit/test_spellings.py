"""Names and keywords of other libraries: each says what to write instead, and what it says exists."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import spellings
from bwcompiler.errors import SignatureError

MODULES: dict[str, Any] = {"bw": bw, "bw.tree": bw.tree, "bw.random": bw.random, "bw.nn": bw.nn}
CUSTOM = bw.custom_vjp(np.sin)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "defvjp": CUSTOM.defvjp, "defjvp": bw.custom_jvp(np.sin).defjvp, "key": bw.random.key,
    **{name: getattr(bw, name) for name in spellings.KEYWORDS if hasattr(bw, name)},
}


@pytest.mark.parametrize("where", spellings.NAMES)
def test_names_that_do_not_exist(where: str) -> None:
    module = MODULES[where]
    for name, hint in spellings.NAMES[where].items():
        message = f"{where}.{name} does not exist\n  hint: {hint}"
        assert not hasattr(module, name)
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert str(caught.value) == message
        with pytest.raises(ImportError) as refused:
            exec(f"from {where.replace('bw', 'bwcompiler')} import {name}")
        assert str(refused.value) == message


@pytest.mark.parametrize("space", spellings.NAMESPACES)
def test_namespaces_that_do_not_exist(space: str) -> None:
    namespace, names = getattr(bw, space), spellings.NAMESPACES[space]
    for name in [name for name in (*names, "nonsense") if name]:
        with pytest.raises(AttributeError, match=re.escape(f"bw.{space}.{name} does not exist\n  hint: {names.get(name, names[''])}")):
            getattr(namespace, name)
    with pytest.raises(TypeError, match="does not exist"):
        namespace()
    assert "does not exist; instead: " in repr(namespace) and not hasattr(namespace, "__array__")


def test_names_that_are_elsewhere() -> None:
    for name, hint in {"lax.scan": "bw.scan", "lax.stop_gradient": "bw.stop_gradient", "lax.sin": "np.sin", "lax.nonsense": "NumPy's",
                       "tree_util.tree_map": "bw.tree.map", "tree_map": "bw.tree.map", "tree.reduced": "there is bw.tree.reduce",
                       "tree_util.tree_transpose": "nested calls", "sin": "np.sin", "relu": "there is bw.nn.relu", "debug.print": "print",
                       "value_and_gradient": "there is bw.value_and_grad", "random.normall": "there is bw.random.normal"}.items():
        with pytest.raises(AttributeError, match=f"bw.{name} does not exist\n  hint: {re.escape(hint)}"):
            operator.attrgetter(name)(bw)
    with pytest.raises(AttributeError, match="bw.nonsense does not exist$"):
        _ = bw.nonsense
    with pytest.raises(ImportError, match="there is bw.grad"):
        exec("from bwcompiler import grads")
    exec("from bwcompiler import lax, ops")
    assert not hasattr(bw, "nonsense") and not hasattr(bw.tree, "nonsense") and not hasattr(bw.random, "nonsense")


def test_what_is_written_instead_exists() -> None:
    hints = [hint for table in (*spellings.NAMES.values(), *spellings.NAMESPACES.values(), *spellings.KEYWORDS.values())
             for hint in table.values()]
    paths = {path for hint in hints for path in re.findall(r"\b((?:bw|np)\.\w+(?:\.\w+)*)", hint)}
    assert len(paths) > 60
    for path in sorted(paths):
        root, _, rest = path.partition(".")
        operator.attrgetter(rest)({"bw": bw, "np": np}[root])


def test_code_that_is_written_instead_runs() -> None:
    """Hints that are Python run, compiled, on an array of four numbers, and give what they give in NumPy."""
    x = np.array([3.0, 1.0, 2.0, 4.0])
    given = {"np": np, "bw": bw, "i": 1, "n": 2, "axis": 0, "axes": 0, "start": 1, "size": 2, "stop": 3, "step": 1, "index": np.array([0, 2]),
             "values": np.array([5.0, 6.0]), "update": np.array([7.0, 8.0]), "pred": np.array([True, False, True, False]), "dtype": np.int64,
             "on_true": 1.0, "on_false": 2.0, "which": np.array([0, 1, 1, 0]), "case0": 1.0, "case1": 2.0, "k": 2, "y": np.ones(4),
             "shape": (2, 2), "sizes": (2,), "low": 1.5, "high": 2.5, "keys": np.array([2.0, 1.0]), "a": 2.0, "b": 2.0, "q": 1.0, "scale": 2.0, "key": bw.random.key(0)}
    special = {"broadcast_in_dim": {"shape": (4, 2)}, "dynamic_update_index_in_dim": {"update": 9.0}, "betainc": {"x": 0.5},
               "population_count": {"x": np.array([3, 4])}, "shift_left": {"x": np.array([3, 4])},
               "shift_right_arithmetic": {"x": np.array([3, 4])}, "erf_inv": {"x": 0.5}}
    ran = 0
    for name, hint in spellings.NAMESPACES["lax"].items():
        *statements, last = hint.split("; ")
        lines = [*statements, f"result = {last}" if "= " not in last.replace("==", "").replace("<=", "").replace(">=", "") else f"{last}; result = y"]
        if name in ("", "dot_general", "reduce", "div", "linalg") or not _is_python("\n".join(lines)):
            continue
        values = {**given, "x": x, **special.get(name, {})}
        code = compile("\n".join(lines), name, "exec")

        def run(values: dict[str, Any], code: Any = code) -> Any:
            space = dict(values)
            exec(code, space)
            return space["result"]

        argument = values.pop("x")
        expected = run({**values, "x": argument})
        found = bw.jit(functools.partial(lambda values, run, x: run({**values, "x": x}), values, run))(argument)
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-12)
        ran += 1
    assert ran > 45


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("function", spellings.KEYWORDS)
def test_keywords_of_other_libraries(function: str) -> None:
    fun = FUNCTIONS[function]
    parameters = inspect.signature(fun).parameters
    for keyword, hint in spellings.KEYWORDS[function].items():
        assert keyword not in parameters and (not hint.endswith("=") or hint[:-1] in parameters)
        with pytest.raises(TypeError, match=re.escape(f"{function} has no keyword {keyword!r}\n  hint: {hint}")):
            fun(**{keyword: None})


@pytest.mark.parametrize("transform", [bw.grad, bw.value_and_grad, bw.jacfwd, bw.jacrev, bw.hessian, bw.hvp, bw.vmap])
def test_a_keyword_of_other_transforms(transform: Any) -> None:
    for keyword, hint in {"argnum": "argnums=", "axis_name": "have no names", "allow_int": "no gradient", "nonsense": "all transforms have"}.items():
        with pytest.raises(SignatureError, match=f"has no option '{keyword}'\n  hint: .*{hint}"):
            transform(np.sin, **{keyword: 0})


def test_attributes_of_compiled_functions() -> None:
    for owner in (bw.jit(np.sin), bw.grad(np.sin), bw.compile(np.sin, 1.0)):
        for name, hint in spellings.ATTRIBUTES.items():
            with pytest.raises(AttributeError, match=f"object has no attribute '{name}'\n  hint: {re.escape(hint)}"):
                getattr(owner, name)
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
            _ = owner.nonsense


def test_functions_that_are_none() -> None:
    x = np.ones(2)
    for call in (lambda: bw.cond(True, 1.0, lambda x: x, 2.0, lambda x: x), lambda: bw.scan(x, lambda c, x: (c, x), x),
                 lambda: bw.fori_loop(0, 2, x, lambda i, x: x), lambda: bw.map(x, np.sin), lambda: bw.switch(0, [1.0, 2.0]),
                 lambda: bw.while_loop(x, x, x), lambda: bw.associative_scan(x, np.add)):
        with pytest.raises(TypeError, match=r": a function is expected, not a \w+\n  hint: bw\.\w+\("):
            call()


def test_static_arguments_that_the_function_has_not() -> None:
    for options, message in (({"static_argnums": 3}, "static_argnums has 3, but g takes x, n"),
                             ({"static_argnums": (0, -3)}, "has -3"), ({"static_argnames": "m"}, "static_argnames has 'm', but g takes x, n"),
                             ({"static_argnames": ["n", "k"]}, "has 'k'")):
        for transform in (bw.jit, bw.grad, bw.vmap, bw.jacobian, bw.hessian, bw.checkpoint):
            with pytest.raises(SignatureError, match=message):
                transform(g, **options)
    assert bw.jit(lambda *args: args[1], static_argnums=1)(1, 2) == 2
    assert bw.jit(lambda x, **options: options["n"] * x, static_argnames="n")(1, n=2) == 2


def test_short_names_of_parameters() -> None:
    assert bw.fori_loop(lo=0, hi=3, body=lambda i, c: c + i, init=0.0) == 3.0
    assert bw.while_loop(cond=lambda c: c < 3, body=lambda c: c + 1, init=0.0) == 3.0
    assert bw.cond(True, t=lambda: 1.0, f=lambda: 2.0) == 1.0
    assert bw.switch(i=1, branches=[lambda: 1.0, lambda: 2.0]) == 2.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'lo'"):
        bw.fori_loop(lo=0, lower=0, upper=3, body=lambda i, c: c, init=0.0)
    for function, names in spellings.ALSO.items():
        parameters = inspect.signature(FUNCTIONS[function]).parameters
        assert set(names.values()) <= parameters.keys() and not names.keys() & parameters.keys()


def test_static_arguments_of_checkpoint() -> None:
    layer = bw.checkpoint(lambda x, n, m=2: np.sin(x) ** n * m, static_argnums=1, static_argnames="m")
    assert bw.grad(lambda x: layer(x, 2, m=3))(0.5) == pytest.approx(6 * np.sin(0.5) * np.cos(0.5)) and layer(0.5, 1) == 2 * np.sin(0.5)
    for n in (np.ones(2), [1]):
        with pytest.raises(SignatureError, match="static arguments must be hashable"):
            bw.grad(lambda x, n=n: layer(x, n))(0.5)


def g(x: Any, n: int = 2) -> Any:
    return x * n


def test_jit_of_a_compiled_function_with_options_of_its_own() -> None:
    gradient = bw.grad(lambda x, n: x ** n)
    assert bw.jit(gradient) is gradient
    static = bw.jit(gradient, static_argnums=1)
    assert static is not gradient and static(3.0, 2) == 6.0 and "compiled in" in static.explain(3.0, 2)
