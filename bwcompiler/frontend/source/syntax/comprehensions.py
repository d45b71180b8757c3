"""Comprehensions that make lists, dictionaries and sets, as loops and branches that put elements into what they make.

    [f(x) for x in xs if x > 0]     bw.listed(lambda found: bw.each(xs, lambda x: bw.sifted(x > 0, lambda: bw.kept(found, lambda: f(x)))))
    found.extend(f(x) for x in xs)  bw.extended(found.extend, lambda: (f(x) for x in xs), lambda found: bw.each(...))
    {k: v for k, v in xs if v > 0}  bw.collected("dict", lambda found: [
                                        bw.sifted_into(found, v > 0, lambda: bw.put(found, k, v)) for k, v in xs])
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import is_pure, makes, nesting
from bwcompiler.frontend.source.syntax.analysis.liveness import stores
from bwcompiler.frontend.source.syntax.names import FOUND, ITEM
from bwcompiler.frontend.source.syntax.nodes import copied, functions_read
from bwcompiler.frontend.source.syntax.notes import IS_SUMMED


def listed(rewriter: Any, node: ast.ListComp) -> ast.expr | None:
    """[x for item in items if test]: loops that append to a list, to which bodies are lambdas."""
    if not _can_be_bodies(node, [node.elt]):
        return None
    kind = "summed" if IS_SUMMED.of(node) else "listed"
    return rewriter.runtime("made", node, rewriter.runtime(kind, node, _filling(rewriter, node)))  # type: ignore[no-any-return]


def extended(rewriter: Any, node: ast.Call) -> ast.expr | None:
    """items.extend(x for item in source if test): as Python does, which appends an element before it computes the next one."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "extend" or len(node.args) != 1 or node.keywords:
        return None
    items: Any = node.args[0]
    if not isinstance(items, ast.GeneratorExp) or not _can_be_bodies(items, [items.elt]):
        return None
    written = rewriter.later(rewriter.visit(copied(items)))
    node.func.value = rewriter.visit(node.func.value)
    return rewriter.runtime("extended", node, node.func, written, _filling(rewriter, items))  # type: ignore[no-any-return]


def _filling(rewriter: Any, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
    """A function that appends the elements to a list."""
    made = makes(node.elt)
    element = rewriter.later(rewriter.computed(rewriter.visit(node.elt), made))
    found: ast.expr = rewriter.runtime("kept", node.elt, _found(node), element)
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            found = rewriter.runtime("sifted", test, rewriter.visit(test), rewriter.later(found))
        rewriter.consumed(generator.iter, generator.target)
        header = rewriter.header(generator.iter, is_alone=True)
        found = rewriter.runtime("each", generator.iter, header, _body(rewriter, generator.target, found))
    return rewriter.function_of(FOUND, found)  # type: ignore[no-any-return]


def collected(rewriter: Any, node: ast.DictComp | ast.SetComp) -> ast.expr | None:
    """{key: value for item in items if test}, {x for item in items if test}: tests, keys and elements may be traced."""
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    if not _can_be_bodies(node, parts):
        return None
    made = [makes(part) for part in parts]
    visited = [rewriter.computed(rewriter.visit(part), one) for part, one in zip(parts, made, strict=True)]
    found: ast.expr = rewriter.runtime("put", node, _found(node), *visited)
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            found = rewriter.runtime("sifted_into", test, _found(node), rewriter.visit(test), rewriter.later(found))
        loop = rewriter.visit(ast.comprehension(generator.target, generator.iter, [], 0))
        found = ast.copy_location(ast.ListComp(found, [loop]), node)
    kind = ast.copy_location(ast.Constant("dict" if isinstance(node, ast.DictComp) else "set"), node)
    return rewriter.runtime("collected", node, kind, rewriter.function_of(FOUND, found))  # type: ignore[no-any-return]


def _can_be_bodies(node: ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp, elements: list[ast.expr]) -> bool:
    """Whether what it evaluates in each iteration may stand in functions."""
    others = node.generators[1:]
    parts = [*elements, *[part for one in node.generators for part in one.ifs], *[one.iter for one in others]]
    bound = stores([one.target for one in node.generators])
    return not any(one.is_async for one in node.generators) and all(map(is_pure, parts)) and not functions_read(parts, bound)


def _found(node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(FOUND, ast.Load()), node)


def _body(rewriter: Any, target: ast.expr, found: ast.expr) -> ast.expr:
    """A function of what a target is bound to."""
    if isinstance(target, ast.Name):
        return rewriter.function_of(target.id, found)  # type: ignore[no-any-return]
    item: ast.expr = ast.copy_location(ast.Name(ITEM, ast.Load()), target)
    if nesting(target):
        item = rewriter.taken_apart(rewriter.items(item, nesting(target)), target)
    item = ast.copy_location(ast.Tuple([item], ast.Load()), target)
    once = ast.copy_location(ast.ListComp(found, [ast.comprehension(rewriter.visit(target), item, [], 0)]), found)
    return rewriter.function_of(ITEM, once)  # type: ignore[no-any-return]
