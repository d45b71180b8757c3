"""`any`, `all` and `next` of generator expressions, split into parts for elements that depend on data.

    next((f(v) for v in kept if v > 1), 0.0)
    ->  bw.searched(next, lambda: kept, lambda items: lambda next: next(...), lambda items: [f(v) for v in items if v > 1], lambda: 0.0)

The call runs as written as long as that is possible; otherwise the list of all elements is made.
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import HEADERS, called, is_pure
from bwcompiler.frontend.source.syntax.analysis.liveness import stores
from bwcompiler.frontend.source.syntax.nodes import copied, functions_read, walk
from bwcompiler.frontend.source.syntax.notes import IS_SOURCE, IS_SUMMED

SOURCE = "__bw_source__"       # what the elements are taken of
FUNCTION = "__bw_function__"   # what is called
_SEARCHES = frozenset(("any", "all", "next"))
_REPEATED = HEADERS | {"len", "items", "keys", "values"}


def search(rewriter: Any, node: ast.Call) -> ast.expr | None:
    """What stands for such a call; None for others.  `rewriter` rewrites what is in it."""
    if not isinstance(node.func, ast.Name) or node.func.id not in _SEARCHES or node.keywords or not 0 < len(node.args) <= 1 + (
            node.func.id == "next") or not isinstance(node.args[0], ast.GeneratorExp):
        return None
    items, default = node.args[0], node.args[1:]
    generator = items.generators[0]
    parts = [items.elt, *generator.ifs, generator.iter, *default]
    if len(items.generators) > 1 or generator.is_async or not all(map(is_pure, parts)) or (
            called(generator.iter) in HEADERS and not _can_be_repeated(generator.iter)) or (
            functions_read(parts, stores([generator.target]))):
        return None
    source = copied(generator.iter)
    if called(source) not in HEADERS:              # evaluated once; others twice, as headers of loops are written otherwise
        generator.iter = ast.copy_location(ast.Name(SOURCE, ast.Load()), source)
    plain, elements = copied(node), ast.copy_location(ast.ListComp(items.elt, items.generators), items)
    function = ast.copy_location(ast.Name(node.func.id, ast.Load()), node.func)
    as_written = rewriter.plain_call(plain)
    as_written.func = ast.copy_location(ast.Name(FUNCTION, ast.Load()), node.func)
    as_written = rewriter.function_of(SOURCE, rewriter.function_of(FUNCTION, as_written))
    made: ast.expr = rewriter.runtime(
        "searched", node, function, rewriter.later(rewriter.header(source)), as_written,
        rewriter.function_of(SOURCE, rewriter.visit(elements)), *[rewriter.later(rewriter.visit(one)) for one in default])
    return made


def _can_be_repeated(source: ast.expr) -> bool:
    """Whether it makes no difference that an expression is evaluated twice: it calls nothing of the user's."""
    calls = [part.func for part in walk(source) if isinstance(part, ast.Call)]
    return all((function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) in _REPEATED for function in calls)


_WHOLE = frozenset(("list", "max", "min", "sorted", "sum", "tuple"))
_WHOLE_OF_MODULES = frozenset(("math.fsum", "math.prod", "np.fromiter", "numpy.fromiter"))


def takes_all(function: ast.expr) -> bool:
    """Whether a function takes all elements of what it gets, by its name."""
    return ast.unparse(function) in _WHOLE_OF_MODULES if isinstance(function, ast.Attribute) and isinstance(
        function.value, ast.Name) else isinstance(function, ast.Name) and function.id in _WHOLE


def all_taken(node: ast.Call) -> str:
    """Of a call that takes all elements of what it gets: a generator expression in it becomes a list, of which perhaps only the sum counts.

    Where another call gives that, it may be a generator of the user's, which is noted there: then, what is made of it.
    """
    if not takes_all(node.func) or not node.args:
        return ""
    kind = "summed" if isinstance(node.func, ast.Name) and node.func.id == "sum" and len(node.args) == 1 and not node.keywords else "listed"
    given: Any = node.args[0]
    if isinstance(given, ast.GeneratorExp):
        given = node.args[0] = ast.copy_location(ast.ListComp(given.elt, given.generators), given)
    if isinstance(given, ast.ListComp):
        IS_SUMMED.put(given, kind == "summed")
    is_counted = isinstance(node.func, ast.Attribute) and (len(node.args) > 2 or any(one.arg == "count" for one in node.keywords))
    if not isinstance(given, ast.Call) or called(given) in HEADERS or is_counted:      # np.fromiter(items, float, 10) takes no more
        return ""
    IS_SOURCE.put(given, True)
    return kind
