"""The function a command is about: `FILE.py:FUNCTION` or `module:function`, and the arguments to compile it for.

`load` imports it, `example_arguments` puts the types given by `--arg` and the file's `example_args()` together.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.cli.problems import UsageProblem, UserProblem, user_line
from bwcompiler.ir.types import DTYPES

_DTYPES = {**{dtype.name: dtype.numpy for dtype in DTYPES}, **{dtype.numpy.name: dtype.numpy for dtype in DTYPES}}


class UserFunction(NamedTuple):
    """A function of the user's and the module it is in; `label` is how the user named the module."""

    fun: Callable[..., Any]
    module: ModuleType
    label: str
    name: str


_SHOWN = 24                    # names


def closest(name: str, known: Sequence[str]) -> str:
    """`; did you mean ...?`, or the known names where none is close."""
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {close[0]}?"
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"; there are: {', '.join(known[:_SHOWN]) or 'none'}{more}"


# ----- the function
def load(text: str) -> UserFunction:
    """Import what `FILE.py:FUNCTION` or `module:function` names."""
    label, separator, name = text.rpartition(":")
    if not separator or not label or not name:
        raise UsageProblem(f"{text!r} does not name a function; write FILE.py:FUNCTION or module:function{_functions_hint(text)}")
    module = _load_file(Path(label)) if label.endswith(".py") or os.sep in label else _load_module(label)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UserProblem(f"{label} has no function {name}{closest(name, _functions(module))}")
        found = getattr(found, part)
    if isinstance(found, type) or not callable(found):
        kind = "class" if isinstance(found, type) else type(found).__name__
        raise UserProblem(f"{name} in {label} is not a function but a {kind}{closest(name, _functions(module))}")
    return UserFunction(found, module, label, name)


def _functions(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items()
            if callable(value) and not name.startswith("_") and not isinstance(value, type) and name != "example_args"
            and getattr(value, "__module__", module.__name__) == module.__name__]


def _functions_hint(text: str) -> str:
    path = Path(text.rstrip(":"))
    if path.suffix != ".py" or not path.is_file():
        return ""
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):          # the hint is not worth an error of its own
        return ""
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef) and node.name != "example_args"]
    return f", as in {path}:{names[0]}" if names else ""


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [other.name for other in path.parent.glob("*.py")], 1)
        raise UserProblem(f"there is no file {path}" + (f"; did you mean {path.parent / near[0]}?" if near else ""))
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_of_bwc"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserProblem(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module                         # dataclasses and pickles look their module up
    sys.path.insert(0, str(path.parent.resolve()))     # as `python FILE.py` does
    with _reported(str(path.resolve()), f"cannot import {path}"):
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())                    # as `python -m` does
    with _reported("", f"cannot import {name}"):
        return importlib.import_module(name)


class _reported:
    """Exceptions of the user's code become a UserProblem that names the line."""

    def __init__(self, file: str, what: str) -> None:
        self.file = file
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, UserProblem | UsageProblem):
            raise UserProblem(f"{self.what}: {user_line(error, self.file)}{type(error).__name__}: {error}") from error


# ----- types of arguments
class ArgumentSpec:
    """Stands for an array of this shape and dtype."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def parse_argument(text: str) -> tuple[str, Any]:
    """`NAME=f64[32,64]` -> the name and what stands for the argument; also numbers and containers: `p={'w': f64[3], 'n': 2}`."""
    name, separator, spec = text.partition("=")
    if not separator or not name.strip().isidentifier():
        raise UsageProblem(f"--arg {text}: write NAME=TYPE, for example --arg x=f64[32,64]")
    return name.strip(), parse_spec(spec)


def parse_spec(text: str) -> Any:
    """A type such as `f64[32,64]`, `f32[]` or `float64[3]`, a Python number, or a dict, list or tuple of these."""
    try:
        node = ast.parse(re.sub(r"\b(\w+)\s*\[\s*\]", r"\1[()]", text.strip()), mode="eval").body     # Python has no empty index
    except SyntaxError:
        raise _bad_spec(text, text) from None
    return _spec_of(node, text)


def _bad_spec(part: str, text: str) -> UsageProblem:
    what = repr(text) if part.replace(" ", "") == text.replace(" ", "") else f"{part!r} in {text!r}"
    return UsageProblem(f"{what} is not a type; write for example f64[32,64], i64[10], f32[] (a scalar), a number, a quoted text, or "
                        f"{{'w': f64[3], 'b': f64[]}}; dtypes: {', '.join(dtype.name for dtype in DTYPES)}")


def _spec_of(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Name(id=name) if name in _DTYPES:
            return ArgumentSpec((), _DTYPES[name])
        case ast.Subscript(value=ast.Name(id=name), slice=shape) if name in _DTYPES:
            extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
            found = [extent.value for extent in extents if isinstance(extent, ast.Constant) and type(extent.value) is int]
            if len(found) == len(extents):
                return ArgumentSpec(tuple(found), _DTYPES[name])
        case ast.Tuple(elts=parts):
            return tuple(_spec_of(part, text) for part in parts)
        case ast.List(elts=parts):
            return [_spec_of(part, text) for part in parts]
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {key.value: _spec_of(value, text) for key, value in zip(keys, values, strict=True) if isinstance(key, ast.Constant)}
        case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | complex | str):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float | complex):
            return -value
    raise _bad_spec(ast.unparse(node).replace("[()]", "[]"), text)


# ----- arguments
def example_arguments(function: UserFunction, given: Sequence[str]) -> tuple[Any, ...]:
    """The positional arguments to compile for: those of `--arg`, the others from `example_args()`, then defaults."""
    specs = dict(parse_argument(text) for text in given)
    parameters = _parameters(function, specs)
    unknown = [name for name in specs if name not in parameters]
    if unknown:
        raise UserProblem(f"--arg {unknown[0]}: {function.name} has no parameter {unknown[0]}{closest(unknown[0], list(parameters))}")
    examples = _examples(function, list(parameters)) if set(specs) != set(parameters) else {}
    found: list[Any] = []
    missing: list[str] = []
    last = max([k for k, name in enumerate(parameters) if name in specs or name in examples], default=-1)
    for position, (name, parameter) in enumerate(parameters.items()):
        if name in specs or name in examples:
            found.append(specs.get(name, examples.get(name)))
        elif parameter.default is inspect.Parameter.empty:
            missing.append(name)
        elif position < last:
            found.append(parameter.default)
    if missing:
        raise UserProblem(_asking_for(missing, function, is_first=missing[0] == next(iter(parameters))))
    return tuple(found)


def _asking_for(missing: Sequence[str], function: UserFunction, is_first: bool) -> str:
    """What to write for parameters of which nothing is known; is_first: there is the first one among them."""
    owner = function.name.rpartition(".")[0]
    if owner and is_first:
        return (f"{function.name} takes an object, {missing[0]}: define example_args() in {function.label}, which returns it and the other "
                f"arguments in a tuple, or a function that calls the method of an object of {owner}")
    return (f"{function.name} needs the types of {', '.join(missing)}; write {' '.join(f'--arg {name}=f64[32,64]' for name in missing)} "
            f"(dtype and shape), or define example_args() in {function.label}, which returns a tuple of arguments")


def _parameters(function: UserFunction, specs: dict[str, Any]) -> dict[str, inspect.Parameter]:
    """The parameters that take positional arguments; a NumPy function's are the names given."""
    try:
        parameters = inspect.signature(function.fun).parameters
    except (TypeError, ValueError):
        return {name: inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in specs}
    by_name = [name for name, parameter in parameters.items()
               if parameter.kind is parameter.KEYWORD_ONLY and (parameter.default is parameter.empty or name in specs)]
    if by_name:
        raise UserProblem(f"{function.name} has the keyword-only parameter {by_name[0]}; write a function of positional ones around it")
    return {name: parameter for name, parameter in parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)}


def _examples(function: UserFunction, names: Sequence[str]) -> dict[str, Any]:
    """What the module's `example_args()` returns, by parameter: a tuple in order, or a dict by name."""
    make = getattr(function.module, "example_args", None)
    if make is None:
        return {}
    with _reported(function.module.__file__ or "", f"example_args() of {function.label} failed"):
        made = make()
    if isinstance(made, dict):
        return {name: value for name, value in made.items() if name in names}
    if not isinstance(made, tuple | list):
        raise UserProblem(f"example_args() of {function.label} must return a tuple of arguments (or a dict by name), it returned "
                          f"{type(made).__name__}")
    if len(made) > len(names):
        raise UserProblem(f"example_args() of {function.label} returned {len(made)} arguments, {function.name} takes {len(names)}; return "
                          "a dict by name, or give the types with --arg")
    return dict(zip(names, made, strict=False))
