"""`converted`: a function's form with captured control flow, or the function itself if it has none."""

from __future__ import annotations

import ast
import dis
import functools
import types
from collections.abc import Callable, Collection
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from bwcompiler.frontend.source.syntax.analysis.expressions import RUNTIME
from bwcompiler.frontend.source.syntax.definitions.lookup import compiled, definition, modules
from bwcompiler.frontend.source.syntax.generators import handing, handing_until
from bwcompiler.frontend.source.syntax.recursion import as_loop
from bwcompiler.frontend.source.syntax.rewriting import rewritten
from bwcompiler.frontend.source.syntax.statements.continued import continued
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.tracing.provenance.source import is_convertible, stands_for

_LIMIT = 1 << 12


class Form(NamedTuple):
    """The rewritten code of a code object (kept alive: its id is the key); None where it is used as it is.

    writes_globals: it binds variables of its module.  binds: those of enclosing functions that it binds.  is_known: its source was found.
    """

    original: CodeType
    code: CodeType | None
    writes_globals: bool
    binds: tuple[str, ...]
    is_known: bool


_forms: dict[int, Form] = {}


def converted(fun: Any, runtime: Any, is_loop: bool = False, going_on: Collection[tuple[str, int]] = ()) -> Any:
    """fun, a Python function of the user's, with its control flow captured: also as a method, a `partial` or the `__call__` of an object.

    Anything else as it is.  is_loop: it calls itself at its end, and is to be a loop (`recursion.as_loop`).  going_on: files and lines of
    branches whose sides go on to the end of their blocks (`statements.continued`).
    """
    if isinstance(fun, types.MethodType):
        plain: Any = fun.__func__
        inner = _with_code(plain, loop_form(fun).code, runtime) if is_loop else converted(plain, runtime, going_on=going_on)
        return fun if inner is None or inner is plain else types.MethodType(inner, fun.__self__)
    if isinstance(fun, functools.partial):
        inner = converted(fun.func, runtime, going_on=going_on)
        return fun if inner is fun.func else functools.partial(inner, *fun.args, **fun.keywords)
    if type(fun) is not FunctionType:
        method = getattr(type(fun), "__call__", None)  # noqa: B004  (the class's, which a call of the object calls)
        if isinstance(fun, type) or not isinstance(method, FunctionType):
            return fun
        inner = converted(method, runtime, going_on=going_on)
        return fun if inner is method else types.MethodType(inner, fun)
    lines = frozenset([line for file, line in going_on if file == fun.__code__.co_filename])
    longer = _continued_form(fun, lines).code if lines and not is_loop else None
    return _with_code(fun, longer or (loop_form(fun) if is_loop else form(fun)).code, runtime) or fun


def handed(fun: FunctionType, runtime: Any, may_end: bool) -> FunctionType | None:
    """A generator function as one that hands what it yields to its argument `generators.TAKE`, with its control flow captured.

    may_end: until that says that it is to end.  None where it cannot be.
    """
    return _with_code(fun, _generator_form(fun, may_end).code, runtime)


def _with_code(fun: FunctionType, code: CodeType | None, runtime: Any) -> FunctionType | None:
    """fun with the code of one of its forms."""
    if code is None:
        return None
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    closure = tuple([CellType(runtime) if name == RUNTIME else cells[name] for name in code.co_freevars])
    made = FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__ = fun.__qualname__
    return made


def form(fun: FunctionType) -> Form:
    """What is known of a function's code."""
    code = fun.__code__
    found = _forms.get(id(code))
    if found is None:
        if len(_forms) >= _LIMIT:
            _forms.clear()
        found = _forms[id(code)] = _form(fun)
    return found


_loop_forms: dict[tuple[int, str, str], Form] = {}
_generator_forms: dict[tuple[int, bool], Form] = {}
_continued_forms: dict[tuple[int, frozenset[int]], Form] = {}


def loop_form(fun: FunctionType | types.MethodType) -> Form:
    """That of a function that calls itself at its end alone, as a loop; without code where it is none."""
    plain: Any = getattr(fun, "__func__", fun)
    receiver = receiver_of(fun)
    if receiver is None:
        return Form(plain.__code__, None, False, (), False)
    defaults = plain.__defaults__ or ()
    key = id(plain.__code__), receiver, repr(defaults)
    found = _loop_forms.get(key)
    if found is None:
        if len(_loop_forms) >= _LIMIT:
            _loop_forms.clear()
        found = _loop_forms[key] = _form(plain, lambda node: as_loop(node, receiver, defaults))
    return found


def _continued_form(fun: FunctionType, lines: frozenset[int]) -> Form:
    """That of a function whose branches in some lines go on to the end of their blocks; without code where it has none of these."""
    key = id(fun.__code__), lines
    found = _continued_forms.get(key)
    if found is None:
        if len(_continued_forms) >= _LIMIT:
            _continued_forms.clear()
        found = _continued_forms[key] = _form(fun, lambda node: continued(node, lines))
    return found


def _generator_form(fun: FunctionType, may_end: bool) -> Form:
    key = id(fun.__code__), may_end
    found = _generator_forms.get(key)
    if found is None:
        if len(_generator_forms) >= _LIMIT:
            _generator_forms.clear()
        found = _generator_forms[key] = _form(fun, handing_until if may_end else handing)
    return found


def receiver_of(fun: FunctionType | types.MethodType) -> str | None:
    """What stands before a function's name where it calls itself: nothing, or the first parameter or the class of a method.

    None where its name would not stand for it there.
    """
    if isinstance(fun, types.MethodType):
        plain, owner = fun.__func__, fun.__self__
        name, kind = plain.__name__, owner if isinstance(owner, type) else type(owner)
        is_it = getattr(getattr(kind, name, None), "__func__", getattr(kind, name, None)) is plain
        is_it = is_it and (kind is owner or name not in getattr(owner, "__dict__", {})) and plain.__code__.co_argcount > 0
        return plain.__code__.co_varnames[0] if is_it else None
    if _outside(fun, fun.__name__) is fun:
        return ""
    *_, around, _ = ("", *fun.__qualname__.split("."))
    found = _outside(fun, around)
    return around if isinstance(found, type) and getattr(found, fun.__name__, None) is fun else None


def _outside(fun: FunctionType, name: str) -> Any:
    """What a name stands for that a function does not bind."""
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    try:
        return cells[name].cell_contents if name in cells else fun.__globals__.get(name)
    except ValueError:                             # an empty cell
        return None


def _form(fun: FunctionType, change: Callable[[ast.FunctionDef], ast.FunctionDef | None] | None = None) -> Form:
    code = fun.__code__
    if not is_convertible(code) or RUNTIME in code.co_freevars:
        return Form(code, None, False, (), False)
    outside = _writes_globals(code), _bound_cells(code)
    source = definition(fun)
    if source is not None and change is not None:
        changed = change(source.node) if isinstance(source.node, ast.FunctionDef) else None
        source = None if changed is None else source._replace(node=changed)
    node = None if source is None else rewritten(source.node, frozenset(code.co_freevars), modules(source.imports))
    made = None if source is None or node is None else compiled(source._replace(node=node), code, (RUNTIME,))
    if made is None or set(made.co_freevars) - {RUNTIME} != set(code.co_freevars) or RUNTIME not in made.co_freevars:
        return Form(code, None, *outside, node is not None)
    return Form(code, _renamed(made, code), _writes_globals(made), outside[1], True)


_STORES = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL"))
_CELL_STORES = frozenset(dis.opmap[name] for name in ("STORE_DEREF", "DELETE_DEREF"))


def _writes_globals(code: CodeType) -> bool:
    return not _STORES.isdisjoint(code.co_code[::2])


def _bound_cells(code: CodeType) -> tuple[str, ...]:
    """Variables of enclosing functions that it binds: itself, or functions defined in it that it may call."""
    if not code.co_freevars:
        return ()
    found: dict[str, None] = {}
    if not _CELL_STORES.isdisjoint(code.co_code[::2]):
        found.update({instruction.argval: None for instruction in dis.get_instructions(code)
                      if instruction.opcode in _CELL_STORES and instruction.argval in code.co_freevars})
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found.update({name: None for name in _bound_cells(part) if name in code.co_freevars})
    return tuple(found)


_AROUND = "around.<locals>."   # see lookup.compiled


def _renamed(made: CodeType, code: CodeType) -> CodeType:
    """The code, all its bodies named like the function itself, as tracebacks and sources shall show them."""
    found = made.replace(co_consts=_named(made, code), co_qualname=code.co_qualname)
    stands_for(found, code)
    return found


def _named(made: CodeType, code: CodeType) -> tuple[Any, ...]:
    """The constants of a code object, with the names of the user's functions."""
    return tuple([_inner(part, code) if isinstance(part, CodeType) else part for part in made.co_consts])


def _inner(made: CodeType, code: CodeType) -> CodeType:
    if not made.co_name.startswith(PREFIX):        # a function of the user's
        return made.replace(co_consts=_named(made, code), co_qualname=made.co_qualname.removeprefix(_AROUND))
    found = made.replace(co_consts=_named(made, code), co_name=code.co_name, co_qualname=code.co_qualname)
    stands_for(found, None)
    return found
