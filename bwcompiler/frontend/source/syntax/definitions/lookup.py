"""The syntax tree of a function: found in its file by its line, and used only if it compiles to the code that runs.

There is no tree for a file that was edited since it was imported, code made by exec, or code changed by an import hook.  Two cases are
handled: pytest rewrites `assert` in test modules, and code that was typed or piped in has its source elsewhere (`typed.py`).
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from bwcompiler.frontend.source.syntax.definitions.annotated import without_annotations
from bwcompiler.frontend.source.syntax.definitions.assigned_globals import without_globals
from bwcompiler.frontend.source.syntax.definitions.deleted import without_deletions
from bwcompiler.frontend.source.syntax.definitions.private import with_class_names
from bwcompiler.frontend.source.syntax.definitions.stored import mark_stored
from bwcompiler.frontend.source.syntax.definitions.typed import typed_texts
from bwcompiler.frontend.source.syntax.nodes import copied, copies, placed, walk
from bwcompiler.frontend.tracing.provenance.parsed_files import parsed

Definition = ast.FunctionDef | ast.Lambda

NO_TYPE_PARAMETERS: dict[str, Any] = {"type_params": []}       # which functions of Python 3.12 have

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag

class _File(NamedTuple):
    """The functions of a file by the line that they start in, as Python counts: a decorator's, if there is one.

    lines: that were parsed; a file may change.  imports: of the module, on which the code of calls depends (`np.sum(x)`).
    """

    lines: list[str]
    definitions: dict[int, list[Definition]]
    imports: list[ast.stmt]


class Source(NamedTuple):
    """The definition of a function, without decorators, defaults and annotations, and what its module imports."""

    node: Definition
    imports: list[ast.stmt]


_files: dict[str, _File] = {}


def definition(fun: FunctionType) -> Source | None:
    """The source of fun; None where what is in the file does not compile to its code."""
    code = fun.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fun.__globals__)
    if not lines:
        typed = (_defined(_parsed(code.co_filename, text), code) for text in typed_texts(code))
        return next((found for found in typed if found is not None), None)
    known = _files.get(code.co_filename)
    if known is None or known.lines != lines:
        known = _files[code.co_filename] = _parsed(code.co_filename, lines)
    return _defined(known, code)


def definitions_at(code: CodeType) -> list[Definition]:
    """Of code that `definition` was found for: what its file has at its line, to be read only."""
    known = _files.get(code.co_filename)
    return [] if known is None else known.definitions.get(code.co_firstlineno, [])


def _defined(known: _File, code: CodeType) -> Source | None:
    """The definition in a file that compiles to the code."""
    for node in known.definitions.get(code.co_firstlineno, ()):
        for imports in (known.imports, []):        # []: a notebook compiles the statements of a cell one by one
            found = Source(_bare(node), imports)
            if _same(compiled(found, code), code) or _same(_as_pytest_compiles(found, code), code):
                own = copied(found.node)
                if isinstance(own, ast.FunctionDef):
                    without_annotations(own)
                    without_globals(own)
                    without_deletions(own)
                    mark_stored(own)
                return found._replace(node=own)
    return None


def _parsed(file: str, lines: list[str]) -> _File:
    module = with_class_names(parsed(file, lines))
    found: dict[int, list[Definition]] = {}
    imports: list[ast.stmt] = []
    stack: list[ast.AST] = list(module.body)
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Import) or (isinstance(part, ast.ImportFrom) and part.module != "__future__"):
            imports.append(part)
        elif not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            stack += ast.iter_child_nodes(part)
    for node in walk(module):
        if isinstance(node, Definition):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            found.setdefault(min([node.lineno, *[one.lineno for one in decorators]]), []).append(node)
    return _File(lines, found, imports)


def modules(imports: list[ast.stmt]) -> frozenset[str]:
    """The names that imports give to modules."""
    return frozenset((name.asname or name.name).partition(".")[0] for one in imports if isinstance(one, ast.Import) for name in one.names)


def _bare(node: Definition) -> Definition:
    """The definition with nothing that is evaluated when it is reached."""
    given = node.args
    plain = [[ast.copy_location(ast.arg(arg.arg), arg) for arg in part] for part in (given.posonlyargs, given.args, given.kwonlyargs)]
    vararg, kwarg = [None if arg is None else ast.copy_location(ast.arg(arg.arg), arg) for arg in (given.vararg, given.kwarg)]
    arguments = ast.arguments(plain[0], plain[1], vararg, plain[2], [None] * len(plain[2]), kwarg, [])
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Lambda(arguments, node.body), node)
    return ast.copy_location(ast.FunctionDef(node.name, arguments, node.body, [], None, None, **NO_TYPE_PARAMETERS), node)


def _as_pytest_compiles(source: Source, like: CodeType) -> CodeType | None:
    """The code of a definition in a module whose `assert` statements pytest has rewritten."""
    pytest = sys.modules.get("_pytest.assertion.rewrite")
    if pytest is None or not any(isinstance(part, ast.Assert) for part in walk(source.node)):
        return None
    try:
        own = Source(copied(source.node), copies(source.imports))
        return compiled(own, like, change=lambda module: pytest.rewrite_asserts(module, b""))
    except (AttributeError, TypeError):            # of a pytest that does it in another way
        return None


def compiled(source: Source, like: CodeType, more: tuple[str, ...] = (),
             change: Callable[[ast.Module], None] | None = None) -> CodeType | None:
    """The code of a definition; its free variables are those of `like`, and `more`.  None where it cannot be compiled so.

    change: of the module around it, before it is compiled.
    """
    node = source.node
    free = (*like.co_freevars, *more)
    parameters = [ast.arg(name) for name in free]
    nothing = ast.arguments([], parameters, None, [], [], None, [])
    body: list[ast.stmt] = [node] if isinstance(node, ast.FunctionDef) else [ast.copy_location(ast.Expr(node), node)]
    if isinstance(node, ast.FunctionDef) and node.name not in free:
        body = [ast.Global([node.name]), *body]    # its own name means to it what it means outside
    around = ast.FunctionDef("around", nothing, body, [], None, None, **NO_TYPE_PARAMETERS, lineno=1, col_offset=0)
    module = placed(ast.Module([*source.imports, around], []))
    if change is not None:
        change(module)
    try:
        made = compile(module, like.co_filename, "exec", flags=like.co_flags & _FUTURES, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    outer = next(part for part in made.co_consts if isinstance(part, CodeType) and part.co_name == "around")
    return next((part for part in outer.co_consts if isinstance(part, CodeType)), None)


def _same(found: CodeType | None, code: CodeType) -> bool:
    return found is not None and (
        found.co_code == code.co_code and found.co_names == code.co_names and found.co_varnames == code.co_varnames
        and found.co_freevars == code.co_freevars and found.co_cellvars == code.co_cellvars and _numbers(found) == _numbers(code)
        and all(_same(one, other) for one, other in zip(_inner(found), _inner(code), strict=True)))


def _numbers(code: CodeType) -> list[str]:
    return [f"{len(_inner(code))}", *[repr(part) for part in code.co_consts[1:] if not isinstance(part, CodeType)]]


def _inner(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]
