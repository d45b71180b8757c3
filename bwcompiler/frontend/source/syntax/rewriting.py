"""The syntax tree of a function, rewritten so that loops, branches and calls go through `runtime`.

    for i in range(n):                  def body(item):
        y[i] = f(x)                         nonlocal i
                                            i = item
                              ->            bw.changed(y)[i] = bw.call(f)(x)
                                        bw.for_(bw.iterable(bw.call(range)(n)), body, names)

The variables remain variables of the function: bodies share its cells, so scopes, closures and comprehensions keep their
meaning.  Every node keeps its line and column.  A statement whose body leaves it (`break`, `yield` ...) keeps its form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import (
    HEADERS,
    RUNTIME,
    bracketed,
    called,
    conjuncts,
    inside,
    is_pure,
    keeps,
    leaves,
    length_bounds,
    makes,
    mark_test,
    nesting,
    sees_its_frame,
    why_kept,
)
from bwcompiler.frontend.source.syntax.analysis.filled import filled
from bwcompiler.frontend.source.syntax.analysis.liveness import annotate, changed, rebound, stores
from bwcompiler.frontend.source.syntax.analysis.private import private_lists
from bwcompiler.frontend.source.syntax.comparisons import compared
from bwcompiler.frontend.source.syntax.comprehensions import collected, extended, listed
from bwcompiler.frontend.source.syntax.definitions.lookup import NO_TYPE_PARAMETERS, Definition
from bwcompiler.frontend.source.syntax.names import ITEM, Variables
from bwcompiler.frontend.source.syntax.nodes import around_star, copied, walk
from bwcompiler.frontend.source.syntax.notes import (
    FLAG,
    HANDED_OVER,
    IS_GLOBALS,
    IS_SOURCE,
    IS_STATEMENT,
    IS_TAIL,
    IS_TEST,
    LIVE_HEAD,
    LIVE_OUT,
)
from bwcompiler.frontend.source.syntax.searches import all_taken, search
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX, without_jumps
from bwcompiler.frontend.source.syntax.statements.matches import without_matches
from bwcompiler.frontend.source.syntax.statements.named import without_named_tests
from bwcompiler.frontend.source.syntax.statements.tries import rewritten_try

_IDENTITY: dict[type[ast.cmpop], str] = {ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift"}


def rewritten(node: Definition, free: frozenset[str], modules: frozenset[str] = frozenset()) -> Definition | None:
    """The definition with its control flow taken apart, in place; None where there is nothing that could be.

    free: names of variables of enclosing functions.  modules: names of imported modules.
    """
    scope: list[Any] = node.body if isinstance(node, ast.FunctionDef) else [ast.Expr(node.body)]
    if any(isinstance(part, ast.Await | ast.AsyncFor | ast.AsyncWith) for part in inside(scope)) or sees_its_frame(scope):
        return None
    parameters = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *filter(None, (node.args.vararg, node.args.kwarg)),
                                      *node.args.kwonlyargs)]
    rewriter = _Rewriter(parameters, free, modules - set(parameters))
    if isinstance(node, ast.Lambda):
        node.body = rewriter.visit(node.body)
        return node
    fills = bool(filled(node.body, frozenset(parameters) | free))
    rewriter.private = private_lists(node.body, {*parameters, *free})
    without_matches(node)
    without_named_tests(node)
    without_jumps(node)
    rewriter.unsure = annotate(node.body) - {*parameters, *free}
    node.body = rewriter.declared(rewriter.block(node.body), node)
    if fills:
        node.body.insert(0, rewriter.entered(node))
    return node


class _Rewriter(ast.NodeTransformer):
    """Rewrites expressions in place; statements into lists of statements."""

    def __init__(self, parameters: list[str], free: frozenset[str], modules: frozenset[str]) -> None:
        self.parameters = parameters
        self.free = free
        self.modules = modules
        self.shared: dict[str, None] = {}          # variables that bodies bind: to be declared as the function's own
        self.count = 0
        self.unsure: frozenset[str] = frozenset()  # variables that may have no value where they are read
        self.private: frozenset[str] = frozenset()
        self.why = ""                              # a loop around keeps its form, if one does

    def declared(self, body: list[ast.stmt], node: ast.FunctionDef) -> list[ast.stmt]:
        """The body, behind declarations that make all shared names variables of the function."""
        names = [name for name in self.shared if name not in self.parameters and name not in self.free]
        made: list[ast.stmt] = [ast.AnnAssign(ast.Name(name, ast.Store()), ast.Constant(0), None, 1) for name in names]
        return [ast.copy_location(one, node) for one in made] + body

    def entered(self, node: ast.FunctionDef) -> ast.stmt:
        """What is done first in a function that fills arrays: its parameters say which of these will take traced values.

        So do variables of functions around, which need not have a value yet: a lambda has their cells.
        """
        def variables(names: Iterable[str]) -> ast.expr:
            return ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        names = ast.Tuple([ast.Constant(name) for name in self.parameters], ast.Load())
        around = ast.Lambda(ast.arguments([], [], None, [], [], None, []), variables(sorted(self.free)))
        return ast.copy_location(ast.Expr(self.runtime("entered", node, names, variables(self.parameters), around)), node)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            found = self.visit(node)
            made += found if isinstance(found, list) else [found]
        return made

    # ----- scopes that keep their own form
    def visit_Lambda(self, node: ast.AST) -> Any:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function in it: noted, where it may bind variables of this one or of those around."""
        if not any(isinstance(part, ast.Nonlocal) for part in walk(node)):
            return node
        return [node, self.statement("defined", node, ast.copy_location(ast.Name(node.name, ast.Load()), node))]

    # ----- expressions
    def runtime(self, name: str, node: ast.AST, *args: ast.expr) -> ast.Call:
        """A call of the runtime, at the place of a node."""
        function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
        made = ast.Call(function, list(args), [])
        for part in (function, function.value):
            ast.copy_location(part, node)
            part.end_lineno, part.end_col_offset = part.lineno, part.col_offset + 1
        return ast.copy_location(made, node)

    def visit_Call(self, node: ast.Call) -> Any:
        return node if IS_GLOBALS.of(node) else search(self, node) or extended(self, node) or self.plain_call(node)

    def plain_call(self, node: ast.Call) -> Any:
        """A call, of which the arguments are evaluated as they are written."""
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.parameters:
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in ("__class__", self.parameters[0])]
            return node
        gathers = all_taken(node)
        kept = keeps(node)
        made = [makes(arg) if kept else False for arg in [*node.args, *[one.value for one in node.keywords]]]
        if isinstance(node.func, ast.Attribute):   # a method, no property
            node.func.value = self.visit(node.func.value)
            node.args = list(map(self.visit, node.args))
            node.keywords = list(map(self.visit, node.keywords))
        else:
            self.generic_visit(node)
        if gathers:
            node.args[0] = self.runtime("gathered", node.args[0], node.args[0], ast.Constant(gathers))
        plain = node.func.id if isinstance(node.func, ast.Name) else ""
        if IS_STATEMENT.of(node) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            name = ast.copy_location(ast.Constant(node.func.attr), node)       # x[k].append(y)
            node.func = self.runtime("method_of_item", node.func, *node.func.value.args, name)
        else:
            node.func = self.runtime("generated" if IS_SOURCE.of(node) else "call", node.func, node.func)
        for place, one in enumerate(made):
            if place < len(node.args):
                node.args[place] = self.computed(node.args[place], one)
            else:
                keyword = node.keywords[place - len(node.args)]
                keyword.value = self.computed(keyword.value, one)
        return self.runtime("made", node, node) if plain in ("list", "dict", "set") else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            is_key = isinstance(node.slice, ast.Constant) and not isinstance(node.slice.value, int)
            if is_key or any(isinstance(part, ast.Starred) for part in walk(node.slice)):
                return node
            return self.runtime("item", node, node.value, bracketed(node.slice))
        node.value = self.runtime("changed", node.value, node.value)
        if not isinstance(node.slice, ast.Constant | ast.Slice):
            node.slice = self.runtime("read_index", node.slice, bracketed(node.slice))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        module = isinstance(node.value, ast.Name) and node.value.id in self.modules
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return node if module else self.runtime("attribute", node, node.value, ast.copy_location(ast.Constant(node.attr), node))
        node.value = self.runtime("altered", node.value, node.value)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        plain = is_pure(node.body) and is_pure(node.orelse)
        self.generic_visit(node)
        return self.runtime("choose", node, node.test, self.later(node.body), self.later(node.orelse)) if plain else node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        plain = all(map(is_pure, node.values))
        self.generic_visit(node)
        if not plain:
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        is_test = [ast.Constant(True)] if IS_TEST.of(node) else []
        found = node.values[-1]
        for value in reversed(node.values[:-1]):
            found = self.runtime(name, node, value, self.later(found), *is_test)
        return found

    def visit_Name(self, node: ast.Name) -> Any:
        """A variable that may have no value here, as data decide; one with a list that is handed over."""
        is_unsure, is_kept = node.id in self.unsure and isinstance(node.ctx, ast.Load), HANDED_OVER.of(node)
        found = self.runtime("sure", node, node, ast.Constant(node.id)) if is_unsure else node
        return found if is_kept is None else self.runtime("handed_over", node, found, ast.Constant(is_kept))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """x + y, of which both may be concrete arrays; x @ y, of which one may be a sparse array of SciPy's."""
        asked = self._may_read(node.left, node.right)
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            return self.runtime("product", node, node.left, node.right)
        return self._operator("binary", _BINARY[type(node.op)], node, node.left, node.right) if asked else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        asked = self._may_read(node.operand)
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return self.runtime("not_", node, node.operand)
        return self._operator("unary", _UNARY[type(node.op)], node, node.operand) if asked else node

    def _operator(self, kind: str, name: str, node: ast.AST, *operands: ast.expr) -> ast.expr:
        return self.runtime(kind, node, ast.copy_location(ast.Constant(name), node), *operands)

    def _may_read(self, *operands: ast.expr) -> bool:
        """Whether one of these may be an array, or an object of the user's own: no constant."""
        def may(node: ast.expr) -> bool:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules:
                return False
            return not isinstance(node, ast.Constant)
        return any(map(may, operands))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            return compared(self, node) or self.generic_visit(node)
        asked = self._may_read(node.left, node.comparators[0])
        self.generic_visit(node)
        kind, both = type(node.ops[0]), (node.left, node.comparators[0])
        if kind in _IDENTITY:
            return self.runtime(_IDENTITY[kind], node, *both)
        return self._operator("binary", _COMPARE[kind], node, *both) if asked else node

    def later(self, node: ast.expr) -> ast.expr:
        """An expression to be evaluated when it is asked for."""
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), node), node)

    def _made(self, node: Any) -> Any:
        self.generic_visit(node)
        return self.runtime("made", node, node) if isinstance(getattr(node, "ctx", None), ast.Load | None) else node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.consumed(node.iter, node.target)
        self.generic_visit(node)
        node.iter = self.items(self.runtime("iterable", node.iter, node.iter), 1 + nesting(node.target))
        return node

    def items(self, node: ast.expr, levels: int) -> ast.expr:
        """An expression of which elements are taken, and of these again: so many times."""
        return self.runtime("read_items", node, node, ast.copy_location(ast.Constant(levels), node))

    def taken_apart(self, node: ast.expr, target: ast.expr) -> ast.expr:
        """An expression of which the elements go to the names of a target."""
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else None
        return node if names is None else self.runtime("taken_apart", node, node, *map(ast.Constant, around_star(names)))

    def consumed(self, node: ast.expr, target: ast.expr) -> None:
        """What stands in `zip(...)`, `enumerate(...)` or `reversed(...)`, whose elements are taken apart at once."""
        name = called(node)
        if not isinstance(node, ast.Call) or name not in ("zip", "enumerate", "reversed"):
            return
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        targets = {"zip": parts, "enumerate": parts[1:], "reversed": [target]}[name]
        for place, (arg, part) in enumerate(zip(node.args, targets, strict=False)):
            if nesting(part):
                node.args[place] = self.items(arg, 1 + nesting(part))

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.items(node.value, 1)
        return node

    def _display(self, node: Any) -> Any:
        """[*items, x] and (*items, x)."""
        starred = [one for one in node.elts if isinstance(one, ast.Starred)] if isinstance(node.ctx, ast.Load) else []
        for one in starred:
            if isinstance(one.value, ast.GeneratorExp):        # all of it at once
                one.value = ast.copy_location(ast.ListComp(one.value.elt, one.value.generators), one.value)
        found = self._made(node) if isinstance(node, ast.List) else self.generic_visit(node)
        for one in starred:
            one.value = self.runtime("spread", one.value, one.value)
        return found

    visit_List = visit_Tuple = _display

    def visit_Dict(self, node: ast.Dict) -> Any:
        if None in node.keys:                      # {**x, key: value}
            parts = [[value] if key is None else [key, value] for key, value in zip(node.keys, node.values, strict=True)]
            merged = self.runtime("merged", node, *[ast.copy_location(ast.Tuple(part, ast.Load()), node) for part in parts])
            self.generic_visit(merged)
            return self.runtime("made", node, merged)
        made = [makes(value) for value in node.values]
        found = self._made(node)
        node.values = [self.computed(value, one) for value, one in zip(node.values, made, strict=True)]
        return found

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return listed(self, node) or self._made(node)

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        return collected(self, node) or self._made(node)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        found = collected(self, node)
        if found is None:
            made = makes(node.value)
            found = self._made(node)
            node.value = self.computed(node.value, made)
        return found

    visit_GeneratorExp = visit_Set = _made

    def function_of(self, name: str, node: ast.expr) -> ast.expr:
        """A function of one parameter."""
        return ast.copy_location(ast.Lambda(ast.arguments([], [ast.arg(name)], None, [], [], None, []), node), node)

    # ----- statements
    def visit_Assign(self, node: Any) -> Any:
        """target = value; what is made by the value alone may have to be a traced array from the beginning."""
        made = makes(node.value)
        self.generic_visit(node)
        node.value = self.computed(node.value, made)
        depth = max(map(nesting, getattr(node, "targets", ())), default=0)
        if isinstance(made, bool) and depth:
            items = self.items(node.value, depth)
            node.value = self.taken_apart(items, node.targets[0]) if len(node.targets) == 1 else items
        return node

    visit_AnnAssign = visit_Return = visit_Assign

    def computed(self, node: Any, made: Any) -> Any:
        """An expression, and with it what it makes: all of it, or parts of a tuple or list."""
        if made is True:
            return self.runtime("computed", node, node)
        for place, one in enumerate(made or ()):
            display: Any = node.args[0] if isinstance(node, ast.Call) else node    # of bw.made([...])
            elements = display.elts
            elements[place] = self.computed(elements[place], one)
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = self.runtime("raised", node.exc, node.exc)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        if node.msg is not None and not is_pure(node.msg):
            self.generic_visit(node)
            return node
        self.generic_visit(node)
        message = [] if node.msg is None else [self.later(node.msg)]
        return ast.copy_location(ast.Expr(self.runtime("assert_", node, node.test, *message)), node)

    def visit_Try(self, node: ast.Try) -> Any:
        return rewritten_try(self, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        name = node.target.id if isinstance(node.target, ast.Name) else None
        self.generic_visit(node)
        if name is None:
            holder: Any = node.target
            is_attribute = isinstance(holder, ast.Attribute)   # in the place of `altered` or `changed`
            holder.value.func.attr = "combined_attribute" if is_attribute else "combined"
            return node
        operator = ast.copy_location(ast.Constant(f"i{_BINARY.get(type(node.op), 'matmul').strip('_')}"), node)
        value = self.runtime("augmented", node, operator, self.visit_Name(ast.copy_location(ast.Name(name, ast.Load()), node)), node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_For(self, node: ast.For) -> Any:
        flag = FLAG.of(node)
        whole = not node.orelse and not leaves(node.body)
        if not whole:
            source = self.visit(node.iter)
            outer, self.why = self.why, why_kept(node.body)
            why = ast.Constant(self.why)
            node.iter = self.runtime("unrolled", source, self.runtime("iterable", source, source), why)
            node.target = self.visit(node.target)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            self.why = outer
            if flag is not None:                   # it has jumps no more, but the flag that says that it ends
                place = node.body[-1]
                test = self.runtime("leaving", place, ast.copy_location(ast.Name(flag, ast.Load()), place), why)
                node.body.append(ast.copy_location(ast.If(test, [ast.copy_location(ast.Break(), node)], []), node))
            return node
        variables = self.variables([node.target, *node.body], node, LIVE_HEAD.of(node))
        source = self.header(node.iter, is_alone=True)
        item: ast.expr = ast.copy_location(ast.Name(ITEM, ast.Load()), node.target)
        if nesting(node.target):
            item = self.taken_apart(self.items(item, nesting(node.target)), node.target)
        first = ast.copy_location(ast.Assign([self.visit(node.target)], item), node.target)
        body = self.function("body", [first, *self.block(node.body)], variables, node, (ITEM,))
        return [body, self.statement("for_", node, source, body, variables, *([] if flag is None else [ast.Constant(flag)]))]

    def visit_While(self, node: ast.While) -> Any:
        if node.orelse or leaves(node.body) or not is_pure(node.test):
            node.test = self.visit(mark_test(node.test))
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        variables = self.variables(node.body, node, LIVE_HEAD.of(node))
        bounds = [self.later(copied(bound)) for bound in length_bounds(node.test)]
        parts = ast.Tuple([self.later(self.visit(mark_test(copied(part)))) for part in conjuncts(node.test)], ast.Load())
        test = self.later(self.visit(mark_test(node.test)))
        body = self.function("body", self.block(node.body), variables, node, (ITEM,))
        body.args.defaults = [ast.copy_location(ast.Constant(None), node)]         # there is an item where iterations are counted
        return [body, self.statement("while_", node, test, body, variables, ast.copy_location(parts, node), *bounds)]

    def visit_If(self, node: ast.If) -> Any:
        is_tail = IS_TAIL.of(node)
        if any(leaves(block, is_tail) for block in (node.body, node.orelse)):
            test = self.visit(mark_test(node.test))
            node.test = self.runtime("leaving", test, test, ast.Constant(self.why)) if self.why else test
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        variables = self.variables([*node.body, *node.orelse], node, frozenset())
        if is_tail:
            variables = variables._replace(results=tuple([name for name in variables.results if name in self.free]))
        test = self.visit(mark_test(node.test))
        then = self.function("then", self.block(node.body), variables, node)
        orelse = self.function("orelse", self.block(node.orelse) or [ast.copy_location(ast.Pass(), node)], variables, node)
        decision = self.statement("if_", node, test, then, orelse, variables)
        if is_tail:
            assert isinstance(decision, ast.Expr)
            decision = ast.copy_location(ast.Return(decision.value), node)
        return [then, orelse, decision]

    def header(self, node: ast.expr, is_alone: bool = False) -> ast.expr:
        """What a loop goes over (alone, or beside others), with range, zip ... of traced things."""
        name = called(node)
        if not isinstance(node, ast.Call) or name not in HEADERS:
            IS_SOURCE.put(node, is_alone)          # a generator, perhaps
            return self.visit(node)  # type: ignore[no-any-return]
        parts = [self.visit(part) if name in ("range", "arange") or (name == "map" and place == 0) else
                 self.header(part, is_alone and name == "enumerate") for place, part in enumerate(node.args)]
        made = self.runtime("header", node, self.visit(node.func), *parts)
        made.keywords = [ast.copy_location(ast.keyword(one.arg, self.visit(one.value)), node) for one in node.keywords]
        return made

    # ----- bodies
    def variables(self, nodes: list[Any], node: ast.AST, head: frozenset[str]) -> Variables:
        stored = stores(nodes)
        self.shared.update(dict.fromkeys(stored))
        head, out = head | self.free, LIVE_OUT.of(node) | self.free          # others may read what is free
        carried, results = [name for name in stored if name in head], [name for name in stored if name in out]
        anew = [name for name in rebound(nodes, PREFIX) if name in carried]
        private = [name for name in stored if name in self.private]
        return Variables(tuple(stored), tuple(carried), tuple(results), tuple(changed(nodes)), tuple(anew), tuple(private))

    def function(self, name: str, body: list[ast.stmt], variables: Variables, node: ast.AST, parameters: tuple[str, ...] = ()) -> Any:
        self.count += 1
        arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        shared: list[ast.stmt] = [ast.Nonlocal(list(variables.stored))] if variables.stored else []
        made = ast.FunctionDef(f"{PREFIX}{name}_{self.count}", arguments, [*shared, *body], [], None, None, **NO_TYPE_PARAMETERS)
        return ast.copy_location(made, node)

    def statement(self, name: str, node: ast.stmt, *parts: Any) -> ast.stmt:
        """A call of the runtime with values, functions and variables."""
        args = [ast.Name(part.name, ast.Load()) if isinstance(part, ast.FunctionDef) else
                _constant(part) if isinstance(part, Variables) else part for part in parts]
        place = node.iter if isinstance(node, ast.For) else node.test if isinstance(node, ast.While | ast.If) else node
        return ast.copy_location(ast.Expr(self.runtime(name, place, *args)), node)


def _constant(variables: Variables) -> ast.expr:
    return ast.Tuple([ast.Tuple([ast.Constant(name) for name in names], ast.Load()) for names in variables], ast.Load())
