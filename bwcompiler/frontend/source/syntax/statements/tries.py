"""`try` in the syntax tree of a function: its parts become functions, which `bodies/tries.py` runs.

    try:                                  def attempt_1(): ...           one for each statement
        ...                               def handler_2(error): ...
    except LinAlgError as error:   ->     def otherwise_3(): ...
        ...                               bw.try_(((attempt_1,), ...), ((lambda: LinAlgError, handler_2, True),), otherwise_3, names)
    else:
        ...

A `try` that is left by a jump keeps its form; while its body runs, it is recorded that there is a `try`.
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import leaves
from bwcompiler.frontend.source.syntax.analysis.liveness import stores
from bwcompiler.frontend.source.syntax.nodes import children, walk
from bwcompiler.frontend.source.syntax.notes import IS_TAIL, LIVE_CAUGHT
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX

ERROR = f"{PREFIX}error__"
VALUE = f"{PREFIX}value_of_attempt"
_ASKING = frozenset(("exc_info", "exception", "format_exc", "print_exc"))       # functions that tell what is being handled


def rewritten_try(rewriter: Any, node: ast.Try) -> Any:
    """The statements that stand for a `try`; `rewriter` rewrites what is in it."""
    if not node.handlers:
        rewriter.generic_visit(node)
        return node
    is_tail = IS_TAIL.of(node)
    blocks = [node.body, node.orelse, *[handler.body for handler in node.handlers]]
    stored = stores([part for block in blocks for part in block])
    taken = {handler.name for handler in node.handlers} & set(stored)
    if taken or any(leaves(block, is_tail) for block in blocks) or (is_tail and node.finalbody):
        return _in_its_form(rewriter, node)
    found = _apart(rewriter, node, is_tail)
    if not node.finalbody:
        return found
    return ast.copy_location(ast.Try(found, [], [], rewriter.block(node.finalbody)), node)


def _apart(rewriter: Any, node: ast.Try, is_tail: bool) -> list[ast.stmt]:
    statements = [part for one in node.body for part in _value_first(one)]
    variables = rewriter.variables([*statements, *node.orelse, *[part for handler in node.handlers for part in handler.body]], node,
                                   frozenset())
    if is_tail:
        variables = variables._replace(results=tuple([name for name in variables.results if name in rewriter.free]))
    kinds = [_kinds(rewriter, handler) for handler in node.handlers]
    errors = _plain(_errors(node))
    nested = tuple([any(isinstance(part, ast.stmt) for part in children(one)) or any(
        isinstance(part, ast.NamedExpr) for part in walk(one)) for one in statements])       # which bind names before they end
    attempts = [rewriter.function("attempt", rewriter.block([one]), variables, one) for one in statements]
    handlers = [rewriter.function("handler", rewriter.block(handler.body), variables, handler, (handler.name or ERROR,))
                for handler in node.handlers]
    made: list[ast.stmt] = [*attempts, *handlers]
    last: ast.expr = ast.Constant(None)
    if node.orelse:
        made.append(rewriter.function("otherwise", rewriter.block(node.orelse), variables, node))
        last = _load(made[-1])
    caught = tuple(sorted(LIVE_CAUGHT.of(node)))
    body = _tuple(_tuple(*map(_load, attempts)), *[_plain(one) for one in (nested, caught)], errors)
    pairs = _tuple(*[_tuple(kind, _load(handler), ast.Constant(_looks_at_error(one)))
                     for kind, handler, one in zip(kinds, handlers, node.handlers, strict=True)])
    call = rewriter.statement("try_", node, body, pairs, last, variables)
    if is_tail:
        call = ast.copy_location(ast.Return(call.value), node)
    return [*made, call]


def _value_first(node: ast.stmt) -> list[ast.stmt]:
    """x[k] = value in two statements, as Python does it: where the value fails nothing has been written."""
    if not isinstance(node, ast.Assign) or all(isinstance(target, ast.Name) for target in node.targets):
        return [node]
    value = ast.copy_location(ast.Assign([ast.Name(VALUE, ast.Store())], node.value), node)
    node.value = ast.copy_location(ast.Name(VALUE, ast.Load()), node.value)
    return [value, node]


def _in_its_form(rewriter: Any, node: ast.Try) -> ast.Try:
    rewriter.generic_visit(node)
    around = ast.withitem(rewriter.runtime("trying", node.body[0], _plain(_errors(node))), None)
    node.body = [ast.copy_location(ast.With([around], node.body), node.body[0])]
    first = node.handlers[0]
    if any(handler.type is None or ast.unparse(handler.type) == "BaseException" for handler in node.handlers):
        ours = ast.ExceptHandler(rewriter.runtime("passing", first), None, [ast.copy_location(ast.Raise(None, None), first)])
        node.handlers.insert(0, ast.copy_location(ours, first))
    return node


def _errors(node: ast.Try) -> tuple[str, ...]:
    """The names of what the handlers are for."""
    return tuple([name for handler in node.handlers for name in (["BaseException"] if handler.type is None else [
        part.id for part in ast.walk(handler.type) if isinstance(part, ast.Name)])])


def _looks_at_error(handler: ast.ExceptHandler) -> bool:
    """Whether it makes a difference to a handler which exception it is."""
    return handler.name is not None or any(
        (isinstance(part, ast.Raise) and part.exc is None) or (isinstance(part, ast.Name) and part.id in _ASKING)
        or (isinstance(part, ast.Attribute) and part.attr in _ASKING) for part in ast.walk(handler))


def _kinds(rewriter: Any, handler: ast.ExceptHandler) -> ast.expr:
    """What a handler is for, to be evaluated when something was raised."""
    anything = ast.copy_location(ast.Name("BaseException", ast.Load()), handler)
    found: ast.expr = rewriter.later(anything if handler.type is None else rewriter.visit(handler.type))
    return found


def _tuple(*parts: ast.expr) -> ast.expr:
    return ast.Tuple(list(parts), ast.Load())


def _plain(values: tuple[Any, ...]) -> ast.expr:
    return _tuple(*map(ast.Constant, values))


def _load(function: Any) -> ast.expr:
    return ast.Name(function.name, ast.Load())
