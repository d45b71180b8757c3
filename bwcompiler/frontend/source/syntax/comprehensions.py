"""List comprehensions, as loops that append to a list, to which bodies are lambdas.

    [f(x) for x in items if x > 0]
    ->  bw.listed(lambda list: bw.each(items, lambda x: bw.sifted(x > 0, lambda: bw.kept(list, lambda: f(x)))))
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import is_pure, makes, nesting
from bwcompiler.frontend.source.syntax.analysis.liveness import stores
from bwcompiler.frontend.source.syntax.names import ITEM, LIST
from bwcompiler.frontend.source.syntax.nodes import functions_read
from bwcompiler.frontend.source.syntax.notes import IS_SUMMED


def listed(rewriter: Any, node: ast.ListComp) -> ast.expr | None:
    """What stands for a comprehension; None if it keeps its form.  `rewriter` rewrites what is in it."""
    others = node.generators[1:]
    parts = [node.elt, *[part for one in node.generators for part in one.ifs], *[one.iter for one in others]]
    bound = stores([one.target for one in node.generators])
    if any(one.is_async for one in node.generators) or not all(map(is_pure, parts)) or functions_read(parts, bound):
        return None
    made = makes(node.elt)
    element = rewriter.later(rewriter.computed(rewriter.visit(node.elt), made))
    found: ast.expr = rewriter.runtime("kept", node.elt, ast.copy_location(ast.Name(LIST, ast.Load()), node), element)
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            found = rewriter.runtime("sifted", test, rewriter.visit(test), rewriter.later(found))
        rewriter.consumed(generator.iter, generator.target)
        source = rewriter.header(generator.iter, is_alone=True)
        found = rewriter.runtime("each", generator.iter, source, _body(rewriter, generator.target, found))
    kind = "summed" if IS_SUMMED.of(node) else "listed"
    found = rewriter.runtime("made", node, rewriter.runtime(kind, node, rewriter.function_of(LIST, found)))
    return found


def _body(rewriter: Any, target: ast.expr, found: ast.expr) -> ast.expr:
    """A function of what a target is bound to."""
    if isinstance(target, ast.Name):
        found = rewriter.function_of(target.id, found)
        return found
    item: ast.expr = ast.copy_location(ast.Name(ITEM, ast.Load()), target)
    item = ast.copy_location(ast.Tuple([rewriter.items(item, nesting(target)) if nesting(target) else item], ast.Load()), target)
    once = ast.copy_location(ast.ListComp(found, [ast.comprehension(rewriter.visit(target), item, [], 0)]), found)
    found = rewriter.function_of(ITEM, once)
    return found
