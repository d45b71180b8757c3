"""Which variables hold lists that nothing else can hold: `kept = []` in a branch does to such a list what `kept.clear()` does.

Every binding makes a list (`kept = []`, `kept, n = [x], 0`), and every other mention takes elements out, puts some in, or asks for
something that is no list.  So it does not matter which object it is.  A mention may give the list to something else only where it

    is handed over      nothing reads the variable before it is bound anew: `runs.append(kept)`, behind which is `kept = []`
    gets another name   `best = kept`, and no statement changes a list by these names, or by those that they give it to

In both cases nobody can tell a copy from the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from bwcompiler.frontend.source.syntax.analysis.liveness import Names, live_behind, stores
from bwcompiler.frontend.source.syntax.nodes import walk
from bwcompiler.frontend.source.syntax.notes import HANDED_OVER

_CHANGING = frozenset(("append", "extend", "pop", "clear", "insert", "sort", "reverse", "remove"))
_METHODS = _CHANGING | {"index", "count", "copy"}
_BUILTIN = frozenset(("len", "sum", "min", "max", "sorted", "any", "all", "list", "tuple", "set", "bool", "print"))
_GOING_OVER = frozenset(("enumerate", "reversed", "zip"))
_LIBRARIES = frozenset(("np", "numpy", "math"))
_COPYING = frozenset(("copy", "deepcopy"))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_HOLDING = (ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Dict)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def private_lists(body: list[ast.stmt], known: Iterable[str]) -> frozenset[str]:
    """The variables of a function that are such; known: its parameters, and variables of functions around.

    Notes where they hand their lists over.
    """
    return _Private(body, known).found()


class _Private:
    """What the statements of a function do with variables that hold lists.

    others   variables that are none of these.
    bound    to what each variable is bound: the value; given: mentions that give a list to something.
    changed  variables by which lists are changed.  behind: which are read behind each statement, where that was asked.
    """

    def __init__(self, body: list[ast.stmt], known: Iterable[str]) -> None:
        self.body = body
        self.parents = {child: node for statement in body for node in walk(statement) for child in ast.iter_child_nodes(node)}
        self.others = set(known)
        self.bound: dict[str, list[ast.expr]] = {}
        self.given: dict[str, list[ast.Name]] = {}
        self.changed: set[str] = set()
        self.behind: dict[ast.stmt, Names] | None = None
        for statement in body:
            for node in walk(statement):
                self._look(node)

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            self.others.update([part.id for part in ast.walk(node) if isinstance(part, ast.Name)])
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.others.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            value = self._value(node)
            if value is None:
                self.others.add(node.id)
            else:
                self.bound.setdefault(node.id, []).append(value)
        elif isinstance(node, ast.Name):
            if self._changes(node):
                self.changed.add(node.id)
            if not self._is_used(node):
                self.given.setdefault(node.id, []).append(node)

    def found(self) -> frozenset[str]:
        found = set(self.bound) - self.others
        while True:
            wrong = {name for name in found if not all(self._is_made(value, found) for value in self.bound[name])}
            wrong |= {name for name in found - wrong if not all(self._is_given(node, found) for node in self.given.get(name, ()))}
            if not wrong:
                break
            found -= wrong
        for name in found:
            for node in self.given.get(name, ()):
                target = self._target(node)
                HANDED_OVER.put(node, target in found)
        return frozenset(found)

    # ----- bindings
    def _value(self, node: ast.Name) -> ast.expr | None:
        """What a variable is bound to, where that is an expression; for `kept += [x]` what is added."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.AugAssign):
            if not isinstance(parent.op, ast.Add) or not isinstance(parent.value, ast.List):
                return None
            self.changed.add(node.id)
            return parent.value
        if isinstance(parent, ast.Tuple):
            statement = self.parents.get(parent)
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Tuple):
                return None
            values = statement.value.elts
            return values[parent.elts.index(node)] if len(parent.elts) == len(values) else None
        return parent.value if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None

    def _is_made(self, value: ast.expr, private: set[str]) -> bool:
        """Whether an expression makes a list, if it is one, or is a variable whose list is handed over."""
        match value:
            case ast.List() | ast.ListComp():
                return True
            case ast.Name(id=name):
                return name in private
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return any(self._is_made(one, private) for one in (left, right))
            case ast.Subscript(value=of, slice=ast.Slice()):
                return self._is_made(of, private)
            case ast.Call(func=ast.Name(id="list" | "sorted")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy")) if name in private:
                return True
            case ast.Call(func=function):
                return _is_copying(function)
        return False

    # ----- mentions
    def _changes(self, node: ast.Name) -> bool:
        """Whether a mention changes the list."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _CHANGING
        return isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.ctx, ast.Load)

    def _is_used(self, node: ast.AST) -> bool:
        """Whether a mention of a list is one that does not give it to anything."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Attribute):
            call = self.parents.get(parent)
            return parent.attr in _METHODS and isinstance(call, ast.Call) and call.func is parent
        if isinstance(parent, ast.Call):
            if node in parent.args and isinstance(parent.func, ast.Name) and parent.func.id in _GOING_OVER:
                return self._is_gone_over(node, parent)
            return node in parent.args and (_is_asking(parent.func) or _is_copying(parent.func))
        if isinstance(parent, ast.For):
            return self._is_gone_over(node, node)
        if isinstance(parent, ast.Compare):
            others = [one for one in (parent.left, *parent.comparators) if one is not node]
            is_nothing = all(isinstance(one, ast.Constant) and one.value is None for one in others)
            return is_nothing or not any(isinstance(one, ast.Is | ast.IsNot) for one in parent.ops)
        if isinstance(parent, ast.Starred):
            return isinstance(self.parents.get(parent), ast.List | ast.Tuple | ast.Call)
        if isinstance(parent, ast.BinOp):
            return isinstance(parent.op, ast.Add | ast.Mult)
        return isinstance(parent, ast.Return | ast.Subscript | ast.comprehension) or self._is_tested(node)

    def _is_gone_over(self, node: ast.AST, whole: ast.AST) -> bool:
        """Whether a loop goes over a list, or something made of it, and does not bind the variable meanwhile."""
        parent = self.parents.get(whole)
        if isinstance(parent, ast.comprehension):
            return parent.iter is whole
        return isinstance(parent, ast.For) and parent.iter is whole and getattr(node, "id", "") not in stores(parent.body)

    def _is_tested(self, node: ast.AST) -> bool:
        """Whether only its truth is asked for."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.BoolOp):
            return self._is_tested(parent)
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node

    # ----- mentions that give a list to something
    def _is_given(self, node: ast.Name, private: set[str]) -> bool:
        """Whether nobody can tell a copy that is given from the list."""
        target = self._target(node)
        return self._is_handed_over(node) or (target in private and not self._may_be_changed(node.id, target))

    def _target(self, node: ast.Name) -> str:
        """The variable that a mention alone is bound to."""
        for name, values in self.bound.items():
            if any(value is node for value in values):
                return name
        return ""

    def _may_be_changed(self, *names: str) -> bool:
        """Whether lists of some variables may be changed, by these or by whatever they are given to."""
        reached = list(names)
        for name in reached:
            targets = [self._target(node) for node in self.given.get(name, ())]
            if name in self.changed or "" in targets:
                return True
            reached += [one for one in targets if one not in reached]
        return False

    def _is_handed_over(self, node: ast.Name) -> bool:
        """Whether a statement gives a list away, of which nothing behind it reads the variable."""
        statement: ast.AST | None = self.parents.get(node)
        while isinstance(statement, _HOLDING):
            statement = self.parents.get(statement)
        if self.behind is None:
            self.behind = live_behind(self.body)
        if not isinstance(statement, _SIMPLE) or statement not in self.behind:
            return False
        mentions = [one for one in walk(statement) if isinstance(one, ast.Name) and one.id == node.id]
        if any(one is not node and (one in self.given.get(node.id, ()) or self._changes(one)) for one in mentions):
            return False
        is_bound = any(isinstance(one.ctx, ast.Store) for one in mentions) and isinstance(statement, ast.Assign)
        return is_bound or node.id not in self.behind[statement]


def _is_asking(function: ast.expr) -> bool:
    """Whether it is a function that does not keep what it is given."""
    if isinstance(function, ast.Name):
        return function.id in _BUILTIN
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _LIBRARIES


def _is_copying(function: ast.expr) -> bool:
    """Whether it is `copy.copy` or `copy.deepcopy`."""
    return isinstance(function, ast.Attribute) and function.attr in _COPYING and getattr(function.value, "id", "") == "copy"
