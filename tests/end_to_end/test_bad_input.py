"""What goes wrong in user programs: a clear error that names the user's line first.  (Unusual input that is right: test_unusual_input.py.)

Wrong seeds, buffers and wrt of programs are in test_program.py.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
import traceback
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import (
    BwError,
    GradientError,
    SeedError,
    ShapeError,
    SignatureError,
    TracerError,
    UnsupportedError,
)
from bwcompiler.frontend.numpy import queries
from bwcompiler.frontend.tracing.refusals import tracebacks
from tests.support.user_errors import raises_at_user_line

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


# ----- outputs and seeds
def test_non_scalar_output_of_grad() -> None:
    raises_at_user_line(GradientError, lambda: bw.grad(lambda x: x * 2)(X), "scalar", "(3,)", "bw.jacobian", ".sum()")


def test_output_of_length_one_is_not_a_scalar() -> None:
    with pytest.raises(GradientError, match=r"\(1,\)"):
        bw.grad(lambda x: x[:1])(X)
    with pytest.raises(SeedError, match=r"\(1, 1\)"):
        bw.compile(lambda x: x.reshape(1, 3) @ x.reshape(3, 1), X).backward(X)


async def _waits(x: Any) -> Any:
    return x


def _yields(x: Any) -> Any:
    yield x


@pytest.mark.parametrize("fun, hint", [(_yields, "return a list of what it yields"), (lambda x: Fraction(1, 2), r"float\(\) of it"),
                                       (lambda x: "a", "from a function around"), (lambda x: object(), "register it")])
def test_outputs_that_are_no_arrays(fun: Callable[..., Any], hint: str) -> None:
    with pytest.raises(TracerError, match=f"(?s)result is of type .*hint: .*{hint}"):
        bw.compile(fun, X)


def test_texts_are_results_of_jit_alone() -> None:
    assert bw.jit(lambda x: ("a", x * 2))(X)[0] == bw.jit(lambda x: x)("a") == "a"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_coroutines_are_not_compiled() -> None:
    with pytest.raises(TracerError, match="(?s)result is of type coroutine.*the functions that it awaits"):
        bw.jit(_waits)(X)


@pytest.mark.parametrize("transform", [bw.grad, bw.value_and_grad, bw.jacobian, bw.hessian])
def test_arguments_given_to_a_transform(transform: Any) -> None:
    with pytest.raises(GradientError, match=r"(?s)argnums= is an array.*hint: bw\.\w+\(f\)\(x\), not bw\.\w+\(f, x\)"):
        transform(np.sum, X)


WRONG_CALLS = {
    "checkpoint": (lambda: bw.checkpoint(X), TypeError, "bw.checkpoint(f)(x), not"),
    "jvp": (lambda: bw.jvp(np.sin, X, X), bw.errors.TangentError, "bw.jvp(f, (x,), (t,))"),
    "into": (lambda: bw.compile(np.sum, X).backward(X, into=X), SignatureError, "into=(buffer,)"),
    "float labels": (lambda: bw.nn.cross_entropy(M, np.array([0.0, 1.0])), ShapeError, "labels.astype(int)"),
    "odeint": (lambda: bw.scipy.integrate.odeint(lambda y, t: np.ones(5), X, X), ShapeError, "func gives shape (5,), but y0 has shape (3,)"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls_say_what_to_write(name: str) -> None:
    call, kind, part = WRONG_CALLS[name]
    with pytest.raises(kind, match=re.escape(part)):
        call()


def test_function_without_arguments() -> None:
    with pytest.raises(GradientError, match="(?s)has 0 positional arguments.*an argument of what the function reads from outside"):
        bw.grad(lambda: np.sum(X))()


def test_memory_views_are_compiled_in() -> None:
    view = memoryview(X.copy())
    assert bw.jit(lambda view: np.sum(np.asarray(view)))(view) == 6.0


def test_integer_output_of_grad() -> None:
    raises_at_user_line(GradientError, lambda: bw.grad(lambda x: np.argmax(x))(X), "int64")


def test_two_outputs_of_grad() -> None:
    with pytest.raises(GradientError, match="one scalar output"):
        bw.grad(lambda x: (np.sum(x), np.sum(x)))(X)


def test_no_output() -> None:
    def nothing(x):
        np.sum(x)

    with pytest.raises(GradientError):
        bw.grad(nothing)(X)
    assert bw.jit(nothing)(X) is None


@pytest.mark.parametrize("seed", [np.ones(2), np.ones((3, 1)), np.ones(3, np.float32), np.ones(3, complex), (np.ones(3), None), "one"],
                         ids=["length", "rank", "float32", "complex", "tuple", "text"])
def test_wrong_seed_of_a_pullback(seed: Any) -> None:
    _, pullback = bw.vjp(lambda x: x * 2, X)
    with pytest.raises((BwError, ValueError, TypeError)):
        pullback(seed)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integer_argument_of_grad(dtype: type) -> None:
    with pytest.raises(GradientError, match=np.dtype(dtype).name):
        bw.grad(lambda x: np.sum(x * 1.0))(np.ones(3, dtype))


# ----- shapes
class Net:
    def __init__(self) -> None:
        self.w = np.ones(3)


@pytest.mark.parametrize("transform", [
    bw.grad, bw.value_and_grad, bw.jacobian, bw.jacfwd, bw.hessian, lambda f: bw.grad(f, argnums=(1, 0)),
    lambda f: lambda *args: bw.hvp(f)(*args, args[0]), lambda f: lambda *args: bw.compile(f, *args, wrt=0),
], ids=("grad", "value_and_grad", "jacobian", "jacfwd", "hessian", "two arguments", "hvp", "compile"))
def test_an_object_has_no_gradient(transform: Any) -> None:
    fun = lambda net, x: np.sum(x ** 2)
    with pytest.raises(GradientError, match="net is of type Net, .*\n  hint: pass its arrays, .* or make Net a dataclass"):
        transform(fun)(Net(), np.ones(3))
    with pytest.raises(GradientError, match="net is of type str, .*\n  hint: leave it out of argnums / wrt"):
        transform(fun)("mode", np.ones(3))


def test_objects_beside_arrays_and_empty_containers_are_no_errors() -> None:
    net = Net()
    gradient = bw.grad(lambda both, x: np.sum(both[0].w * both[1] * x))((net, 2.0), np.ones(3))
    assert gradient == (None, 3.0)
    assert bw.grad(lambda empty, x: np.sum(x))({}, np.ones(3)) == {}


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: bw.nn.softmax(x, axes=0), "softmax.. got an unexpected keyword argument 'axes'\n  hint: it takes x, axis=-1"),
    (lambda x: bw.nn.conv2d(x), "conv2d.. missing a required argument: 'w'\n  hint: it takes x, w, b=None"),
    (lambda x: bw.random.normal(bw.random.key(0), size=(3,)), "normal.. got an unexpected keyword argument 'size'\n  hint: it takes key, shape="),
], ids=("softmax", "conv2d", "normal"))
def test_wrong_arguments_of_functions_of_the_package(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(np.ones(3))


def test_a_program_without_arguments() -> None:
    with pytest.raises(SignatureError, match=r"compile: affine takes x, w, and .*\n  hint: bw.compile\(affine, x, w\), .*; or bw.jit\(affine\)"):
        bw.compile(affine)
    assert bw.compile(lambda: np.ones(2))().tolist() == [1.0, 1.0] and bw.compile(lambda x=2.0: x * 2)() == 4.0


def affine(x: Any, w: Any, b: float = 0.0) -> Any:
    return x @ w + b


@pytest.mark.parametrize(("name", "hint"), [
    ("Linear", "bw.nn.linear; there are functions, no modules"), ("Conv2d", "bw.nn.conv2d; "), ("Module", "a dict or a dataclass"),
    ("functional", "those of bw.nn itself"), ("soft_max", "there is bw.nn.softmax"),
])
def test_names_of_torch_nn(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"bw.nn.{name} does not exist\n  hint: .*{hint}"):
        getattr(bw.nn, name)


def test_a_recursion_that_ends_by_data() -> None:
    def halved(x: Any) -> Any:
        return x if x < 1 else np.sin(halved(x / 2))

    with pytest.raises(RecursionError) as caught:
        bw.jit(halved)(8.0)
    assert "write it as a loop" in caught.value.__notes__[0]


def test_matmul_of_wrong_shapes() -> None:
    raises_at_user_line(ShapeError, lambda: bw.jit(lambda a, b: a @ b)(M, M), "(2, 3)", "matmul")


def test_broadcasting_of_wrong_shapes() -> None:
    raises_at_user_line(ShapeError, lambda: bw.grad(lambda a, b: np.sum(a * b))(X, np.ones(4)), "(3,)", "(4,)")


def test_wrong_reshape_axis_and_concatenation() -> None:
    raises_at_user_line(ValueError, lambda: bw.jit(lambda x: x.reshape(2, 2))(X))
    raises_at_user_line(ValueError, lambda: bw.jit(lambda x: np.sum(x, axis=3))(X), "axis")
    raises_at_user_line(ValueError, lambda: bw.jit(lambda x, m: np.concatenate([x, m]))(X, M))


# ----- what is not supported
def test_unsupported_function() -> None:
    raises_at_user_line(UnsupportedError, lambda: bw.jit(lambda x: np.is_busday(x))(X), "is_busday", "supported")


def test_unsupported_keyword_is_not_ignored() -> None:
    with pytest.raises((UnsupportedError, TypeError)) as caught:
        bw.jit(lambda x: np.sort(x, order="a"))(X)
    assert "order='a' is not supported" in str(caught.value)


@pytest.mark.parametrize("value", [object(), np.array(["a"]), np.array([None]), {1, 2}],
                         ids=["object", "array of str", "array of objects", "set"])
def test_arguments_that_are_no_numbers(value: Any) -> None:
    with pytest.raises((BwError, TypeError)):
        bw.jit(lambda x: x)(value)


class Foreign:
    """As PyTorch's tensors are: with a dtype that is not NumPy's."""

    shape, dtype = (2,), "torch.float64"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.array([1.0, 2.0])


def test_arrays_of_other_libraries_are_converted() -> None:
    square = lambda x: np.sum(x * x)
    for _ in range(2):
        assert bw.grad(square)(Foreign()).tolist() == [2.0, 4.0] and bw.jit(square)(Foreign()) == 5.0
    assert bw.compile(square, Foreign()).backward(Foreign())[0].tolist() == [2.0, 4.0]
    assert bw.vmap(lambda x: x * 2)(Foreign()).tolist() == [2.0, 4.0] and bw.vjp(square, Foreign())[1](1.0)[0].tolist() == [2.0, 4.0]


# Whatever calls a function of the user's.
CALLS = {
    "jit": lambda fun: bw.jit(fun)(X), "grad": lambda fun: bw.grad(fun)(X), "value_and_grad": lambda fun: bw.value_and_grad(fun)(X),
    "vjp": lambda fun: bw.vjp(fun, X), "jvp": lambda fun: bw.jvp(fun, (X,), (X,)), "linearize": lambda fun: bw.linearize(fun, X),
    "jacobian": lambda fun: bw.jacobian(fun)(X), "jacfwd": lambda fun: bw.jacfwd(fun)(X), "hessian": lambda fun: bw.hessian(fun)(X),
    "hvp": lambda fun: bw.hvp(fun)(X, X), "vmap": lambda fun: bw.vmap(fun)(M), "vmap of grad": lambda fun: bw.vmap(bw.grad(fun))(M),
    "grad of vmap": lambda fun: bw.grad(bw.vmap(fun))(M), "compile": lambda fun: bw.compile(fun, X), "lower": lambda fun: bw.jit(fun).lower(X),
    "explain": lambda fun: bw.jit(fun).explain(X), "as_text": lambda fun: bw.grad(fun).as_text("forward", X),
    "eval_shape": lambda fun: bw.eval_shape(fun, X), "check_grads": lambda fun: bw.check_grads(fun, (X,)),
    "sparse_jacobian": lambda fun: bw.sparse_jacobian(fun)(X), "sparse_hessian": lambda fun: bw.sparse_hessian(fun)(X),
    "scan": lambda fun: bw.scan(lambda c, x: (fun(c), x), X, M), "map": lambda fun: bw.map(fun, M),
    "fori_loop": lambda fun: bw.fori_loop(0, 3, lambda i, c: fun(c), X), "while_loop": lambda fun: bw.while_loop(lambda c: c[0] < 1, fun, X),
    "cond": lambda fun: bw.cond(X[0] > 0, fun, fun, X), "switch": lambda fun: bw.switch(0, [fun, fun], X),
    "associative_scan": lambda fun: bw.associative_scan(lambda a, b: a + fun(b[0]), M), "checkpoint": lambda fun: bw.grad(bw.checkpoint(fun))(X),
    "scan in jit": lambda fun: bw.jit(lambda x: bw.scan(lambda c, x: (fun(c), x), x, M))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_tracebacks_show_the_users_frames(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: Any) -> Any:
        return np.sum(M.T @ x)

    def missing(x: Any) -> Any:
        return np.sum({}["key"] * x)

    for fun, kind in ((wrong, ShapeError), (missing, KeyError)):
        with pytest.raises(kind) as caught:
            CALLS[name](fun)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == fun.__name__ and not [frame for frame in frames if "/bwcompiler/" in frame.filename], frames
        assert kind is KeyError or str(caught.value).startswith(f"{__file__}:{frames[-1].lineno}: ")
    monkeypatch.setenv("BW_TRACEBACK", "full")
    with pytest.raises(ShapeError) as caught:
        CALLS[name](wrong)
    assert "/bwcompiler/" in traceback.extract_tb(caught.value.__traceback__)[-1].filename


# What no transform takes.
REFUSED = {
    "grad": lambda: bw.grad(3), "an array": lambda: bw.grad(np.sum, X), "an option": lambda: bw.grad(np.sum, device=1),  # type: ignore
    "hessian": lambda: bw.hessian(X), "hvp": lambda: bw.hvp(3), "vmap": lambda: bw.vmap(np.sum, in_axes="a"), "jit": lambda: bw.jit(np.sum, device=1),  # type: ignore
    "static": lambda: bw.jit(np.sum, static_argnames="k"), "compile": lambda: bw.compile(np.sum), "checkpoint": lambda: bw.checkpoint(3),  # type: ignore
    "custom_vjp": lambda: bw.custom_vjp(3), "primitive": lambda: bw.primitive(3), "sparse": lambda: bw.sparse_jacobian(3),  # type: ignore
}


@pytest.mark.parametrize("name", REFUSED)
def test_transforms_that_refuse_show_the_users_frames(name: str) -> None:
    with pytest.raises((BwError, TypeError)) as caught:
        REFUSED[name]()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename == __file__ and not [frame for frame in frames if "/bwcompiler/" in frame.filename], frames


@pytest.mark.parametrize("transform", [bw.grad, bw.hessian, bw.hvp, bw.vmap], ids=lambda transform: transform.__name__)
def test_hints_name_the_transform(transform: Any) -> None:
    with pytest.raises(TypeError, match=rf"  hint: bw.{transform.__name__}\(f\)\(x\), not bw.{transform.__name__}\(f\(x\)\)"):
        transform(3.0)


MISTAKES = {
    "name of NumPy": (lambda x: np.sinn(x), AttributeError), "name of an array": (lambda x: x.summ(), AttributeError),  # type: ignore[attr-defined]
    "list index": (lambda x: x * [1][3], IndexError), "key": (lambda x: x * {}[2], KeyError), "array index": (lambda x: x[5], IndexError),
    "text": (lambda x: x * int("a"), ValueError), "file": (lambda x: open("nofile"), FileNotFoundError), "None": (lambda x: None.foo, AttributeError),  # noqa: SIM115
    "call": (lambda x: len(3)(x), TypeError), "domain": (lambda x: x * math.sqrt(-1), ValueError), "empty": (lambda x: x * max([]), ValueError),
    "method": (lambda x: np.zeros((2, 2)).reshape(3), ValueError), "nothing": (lambda x: np.concatenate([]), ValueError),
    "iteration": (lambda x: [k + 1 for k in 3], TypeError), "axis": (lambda x: np.sum(x, axis="a"), TypeError), "dtype": (lambda x: x.astype("foo"), TypeError),
    "module": (lambda x: __import__("nomod"), ImportError), "sorting": (lambda x: sorted([1, "a"]), TypeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_tracebacks_of_mistakes_in_captured_functions(name: str) -> None:
    """What Python and NumPy raise there on the user's behalf is no bug of ours."""
    mistake, kind = MISTAKES[name]

    def loops(x: Any) -> Any:
        for _ in range(10):
            y = mistake(x)
        return y

    with pytest.raises(kind) as caught:
        bw.jit(loops)(X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename == __file__ and not [frame for frame in frames if "/bwcompiler/" in frame.filename], frames


def test_bugs_below_the_users_function_show_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = (lambda x: {}["bug"]).__code__.replace(co_filename=queries.__file__)
    monkeypatch.setattr(queries, "as_tracer", types.FunctionType(bug, {"__name__": queries.__name__}))
    with pytest.raises(KeyError, match="bug") as caught:
        bw.jit(lambda x: x * np.ndim(x))(X)
    assert any(frame.filename.endswith("queries.py") for frame in traceback.extract_tb(caught.value.__traceback__))


def test_modules_that_run_what_users_write_exist() -> None:
    for module in tracebacks.FOR_USERS:
        importlib.import_module(module)


def test_tracebacks_of_running_programs() -> None:
    def host(x: Any) -> Any:
        raise KeyError("host")

    def checked(x: Any) -> Any:
        if x[0] > 0:
            raise ValueError("no")
        return bw.pure_callback(host, x, x).sum()

    compiled = bw.jit(checked)
    for _ in range(2):                                                                # the second call is native from the start
        for x, kind in ((X, ValueError), (-X, KeyError)):
            with pytest.raises(kind, match="test_bad_input.py") as caught:
                compiled(x)
            frames = traceback.extract_tb(caught.value.__traceback__)
            assert not [frame for frame in frames if frame.filename.endswith(("native.py", "callback.py", "executables.py", "checks.py"))], frames
    assert frames[-1].name == "host" and "functions.py" not in [frame.filename.rpartition("/")[2] for frame in frames]


@pytest.mark.parametrize("call", [
    lambda fun: bw.jit(fun)(X), lambda fun: bw.vjp(fun, X), lambda fun: bw.jvp(fun, (X,), (X,)), lambda fun: bw.linearize(fun, X),
    lambda fun: bw.hessian(fun)(X), lambda fun: bw.compile(fun, X)(X), lambda fun: bw.compile(fun, X).backward(X),
    lambda fun: bw.scan(lambda c, x: (c + fun(x), x), 0.0, M), lambda fun: bw.sparse_hessian(fun)(X), lambda fun: bw.vmap(fun)(M),
])
def test_errors_of_running_programs_show_the_users_frames(call: Callable[[Any], Any]) -> None:
    def singular(x: Any) -> Any:
        return np.sum(np.linalg.inv(0.0 * np.outer(x, x)))

    def outside(x: Any) -> Any:
        return x[np.argmax(x) + 3] ** 3

    for fun, kind in ((singular, np.linalg.LinAlgError), (outside, IndexError)):
        for _ in range(2):
            with pytest.raises(kind) as caught:
                call(fun)
            assert str(caught.value).startswith(f"{__file__}:{fun.__code__.co_firstlineno + 1}: ")
            assert {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_an_except_around_a_singular_matrix_is_told_of() -> None:
    def solved(a: Any) -> Any:
        return np.linalg.inv(a)

    def caught_in_vain(a: Any) -> Any:
        total = 0.0
        try:
            for k in range(20):                    # in a loop inside of the `try`
                total += np.sum(solved(a + k))
        except np.linalg.LinAlgError:
            total = total + np.sum(a)              # nobody knows how far the loop got
        return total

    assert bw.jit(caught_in_vain)(np.eye(2)) == pytest.approx(caught_in_vain(np.eye(2)))
    line = caught_in_vain.__code__.co_firstlineno + 5
    with pytest.raises(np.linalg.LinAlgError, match=f"Singular matrix\n.*the `except` in line {line} takes no part\n  hint: .* `if`"):
        bw.jit(caught_in_vain)(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix$"):
        bw.jit(lambda a: np.sum(solved(a)))(np.zeros((2, 2)))

    def tested(a: Any) -> Any:
        if np.linalg.eigvalsh(a)[0] > 0:
            return np.sum(np.linalg.cholesky(a))
        return np.sum(a)

    assert bw.jit(tested)(4.0 * np.eye(2)) == 4.0 and bw.value_and_grad(tested)(np.zeros((2, 2)))[0] == 0.0


@pytest.mark.parametrize("fun", [np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.eigh, np.linalg.svd])
def test_what_is_no_matrix_is_caught_as_numpys_error(fun: Callable[[Any], Any]) -> None:
    def total(x: Any) -> Any:
        try:
            return np.sum(fun(x)[0])
        except np.linalg.LinAlgError:
            return np.sum(x)

    assert bw.jit(total)(X) == 6.0
    with pytest.raises(ShapeError):
        bw.jit(fun)(X)


def test_bugs_show_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bwcompiler.api.programs.specialisation.compile_graph", None)
    with pytest.raises(TypeError, match="not callable") as caught:
        bw.jit(lambda x: np.sum(x) + 17.25)(X)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename.endswith("specialisation.py")


def test_exception_of_the_user_passes_through() -> None:
    def broken(x):
        raise KeyError("mine")

    for call in (lambda: bw.jit(broken)(X), lambda: bw.grad(broken)(X), lambda: bw.compile(broken, X)):
        with pytest.raises(KeyError, match="mine") as caught:
            call()
        assert caught.traceback[-1].name == "broken"


def test_a_failed_trace_leaves_nothing_behind() -> None:
    broken = True

    def sometimes(x):
        if broken:
            raise RuntimeError("first time")
        return 2 * x

    compiled = bw.jit(sometimes)
    with pytest.raises(RuntimeError, match="first time"):
        compiled(X)
    broken = False
    assert compiled(X).tolist() == (2 * X).tolist()


def test_wrong_number_of_arguments() -> None:
    for call in (lambda: bw.jit(lambda x: x)(X, X), lambda: bw.jit(lambda x: x)(), lambda: bw.jit(lambda x: x)(y=X)):
        with pytest.raises(TypeError):
            call()


def test_static_arguments_must_be_hashable() -> None:
    power = bw.jit(lambda x, n: x, static_argnums=1)
    for bad in (X, [1, 2]):
        with pytest.raises(SignatureError, match="static"):
            power(X, bad)


# ----- errors found when the program runs
@pytest.mark.parametrize("index", [3, -4, 1000])
def test_index_out_of_range(index: int) -> None:
    with pytest.raises(IndexError):
        bw.jit(lambda x, i: x[i])(X, index)
    with pytest.raises(IndexError):
        bw.jit(lambda x, i: x[i])(X, np.array([0, index]))
    with pytest.raises(IndexError):
        bw.grad(lambda x, i: np.sum(x[i] ** 2))(X, np.array([0, index]))
    with pytest.raises(IndexError):
        bw.jit(lambda x: x[index])(X)


def test_negative_indices() -> None:
    assert bw.jit(lambda x, i: x[i])(X, -1) == 3.0
    assert bw.grad(lambda x, i: np.sum(x[i]))(X, np.array([-1, 2, 0])).tolist() == [1.0, 0.0, 2.0]


def test_program_runs_again_after_an_error() -> None:
    pick = bw.jit(lambda x, i: x[i])
    assert pick(X, 0) == 1.0
    with pytest.raises(IndexError):
        pick(X, 5)
    assert pick(X, 1) == 2.0


def test_matrix_that_is_not_positive_definite() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        bw.jit(lambda a: np.linalg.cholesky(a))(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_singular_matrix() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        bw.jit(lambda a, b: np.linalg.solve(a, b))(np.ones((2, 2)), np.ones(2))


def test_linear_algebra_gradients(numeric: Any) -> None:
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    for function in (lambda a: np.sum(np.linalg.inv(a)), lambda a: np.sum(np.linalg.solve(a, np.ones(2)) ** 2),
                     lambda a: np.sum(np.linalg.cholesky((a + a.T) / 2))):
        np.testing.assert_allclose(bw.grad(function)(a), numeric(function, a), rtol=1e-6, atol=1e-8)


def test_error_of_a_callback() -> None:
    raises_at_user_line(ValueError, lambda: bw.jit(lambda n, m: np.power(n, m))(np.array([2]), np.array([-1])), "negative")


def test_error_names_the_line_of_the_function_that_was_called() -> None:
    """Equal graphs share an executable, but not their lines."""
    x, n = np.arange(3.0), np.array([2])
    first = bw.jit(lambda x, i: np.sum(x[i]))
    second = bw.jit(lambda x, i: np.sum(x[i]))
    lines = {raises_at_user_line(IndexError, functools.partial(function, x, 7)).splitlines()[0] for function in (first, second)}
    assert len(lines) == 2
    third = bw.jit(lambda n, m: np.power(n, m))
    fourth = bw.jit(lambda n, m: np.power(n, m))
    lines = {raises_at_user_line(ValueError, functools.partial(function, n, -n)).splitlines()[0] for function in (third, fourth)}
    assert len(lines) == 2


@pytest.mark.parametrize("use", [bw.jit, bw.grad, bw.value_and_grad, bw.jacobian, bw.hessian, lambda f: bw.vjp(f, 1.0), lambda f: bw.compile(f, 1.0)])
def test_what_is_not_a_function(use: Any) -> None:
    with pytest.raises(TypeError, match="a function is expected, not 2.5 of type float"):
        use(2.5)


def test_integers_that_do_not_fit() -> None:
    """At a first call, at a later one of the same form, beside an array, as a differentiated argument."""
    function = bw.jit(lambda x: x + 1)
    for number in (2**63, -2**63 - 1, 10**30):
        with pytest.raises(OverflowError, match=f"Python integer {number} out of bounds for int64"):
            function(number)
        assert function(3) == 4
        with pytest.raises(OverflowError, match=f"Python integer {number} out of bounds for int64"):
            function(number)
        with pytest.raises(OverflowError, match=f"Python integer {number} out of bounds for int64"):
            bw.jit(lambda x, number=number: x * number)(np.arange(2))
    assert bw.jit(lambda x: x * 10**30)(np.ones(1)) == 1e30


def test_a_program_is_asked_for_without_arguments() -> None:
    compiled = bw.jit(affine)
    for method, call in ((compiled.explain, "explain(x, w)"), (compiled.lower, "lower(x, w)"), (lambda: compiled.as_text("llvm"),
                         "as_text('llvm', x, w)"), (lambda: bw.grad(affine).dump("a.svg"), "dump('a.svg', x, w)")):
        with pytest.raises(SignatureError, match=r"affine(\.grad)? takes x, w, and a program is made for .*\n  hint: affine(\.grad)?\." + re.escape(call)):
            method()
    with pytest.raises(TypeError, match="as_text: the stage comes first, a text such as 'adjoint'; got a ndarray"):
        compiled.as_text(np.ones((2, 3)), np.ones(3))
    with pytest.raises(TypeError, match="the stage comes first"):
        bw.compile(np.sin, 1.0).as_text(np.ones(3))


def test_a_program_is_called_by_name() -> None:
    program = bw.compile(affine, np.ones((2, 3)), np.ones(3))
    with pytest.raises(SignatureError, match="affine: arguments of a program are passed by position, got x, w by name"):
        program(x=np.ones((2, 3)), w=np.ones(3))
    assert program(np.ones((2, 3)), np.ones(3)).tolist() == [3.0, 3.0]
    with pytest.raises(SignatureError, match="got w by name"):
        program(np.ones((2, 3)), w=np.ones(3))


@pytest.mark.parametrize("transform", [bw.grad, bw.value_and_grad, bw.jacobian, bw.hessian])
def test_what_is_returned_with_has_aux_is_told_of(transform: Callable[..., Any]) -> None:
    def alone(x: Any) -> Any:
        return np.sum(x * x)

    with pytest.raises(GradientError, match=r"return np.sum\(x \* x\)\n  .*must return a pair \(value, aux\), it returned one value\n  hint"):
        transform(alone, has_aux=True)(X)
    with pytest.raises(GradientError, match="it returned a tuple of 3"):
        transform(lambda x: (x[0], 1, 2), has_aux=True)(X)
