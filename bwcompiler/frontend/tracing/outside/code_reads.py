"""Values from outside that a function's bytecode reads: names, and the attributes and constant items that follow them (`code_reads`)."""

from __future__ import annotations

import dis
import sys
import weakref
from collections import Counter
from types import CodeType
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A read in bytecode: a name, and the attributes and constant items that follow it."""

    kind: str                                  # "global", "cell" or "parameter"
    name: str
    steps: tuple[tuple[str, Any], ...]         # ("attribute", name) or ("item", constant)
    line: int

    @property
    def path(self) -> str:
        """As it is written: `self.layers[0]`."""
        return self.name + "".join([f".{key}" if kind == "attribute" else f"[{key!r}]" for kind, key in self.steps])


class CallPlace(NamedTuple):
    """A call of something that was read, with what was read for its positional arguments (None: something else)."""

    function: Place
    arguments: tuple[Place | None, ...]


class CodeReads(NamedTuple):
    """What one function reads from outside, and the names of its parameters that it reads attributes of.

    assigned  paths (`self.step`) that it assigns to further up than it reads them.
    files     methods that read files, whatever they are called on, with their lines.
    loose     attributes that it reads of what no place says (items in a loop, results of calls, parameters), with their lines.
    stored    of these, those that it assigns to further up than it reads them.
    wide      what it calls that reads attributes, or globals, of names that are not in its text: getattr, vars, globals ...
    """

    places: tuple[Place, ...]
    calls: tuple[CallPlace, ...]
    parameters: frozenset[str]
    assigned: frozenset[str]
    files: tuple[tuple[str, int], ...] = ()
    loose: tuple[tuple[str, int], ...] = ()
    stored: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()


_code_reads: weakref.WeakKeyDictionary[CodeType, CodeReads] = weakref.WeakKeyDictionary()


def code_reads(code: CodeType) -> CodeReads:
    """The reads of a code object, and of the functions defined inside of it."""
    found = _code_reads.get(code)
    if found is None:
        found = _code_reads[code] = _Scan(code).run()
    return found


_WIDE = frozenset(("vars", "globals", "asdict", "astuple", "attrgetter", "__dict__"))
_FILE_METHODS = frozenset(("read_text", "read_bytes"))            # of pathlib

_CALL = "PRECALL" if sys.version_info < (3, 12) else "CALL"       # the instruction at which the arguments lie on the stack


class _Scan:
    """One pass over the instructions with a stack of what is known of each operand: a Place, a constant, or nothing."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.stack: list[Any] = []
        self.places: dict[Place, int] = {}             # how often each is used as it is
        self.calls: list[CallPlace] = []
        self.read: set[str] = set()                    # paths so far
        self.assigned: set[str] = set()
        self.files: list[tuple[str, int]] = []
        self.loose: dict[str, int] = {}
        self.stored: set[str] = set()
        self.wide: set[str] = set()
        self.line = code.co_firstlineno
        self.parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        self.known: dict[str, Any] = {name: Place("parameter", name, (), 0) for name in self.parameters}
        self.instructions = list(dis.get_instructions(code))
        stored = Counter([name for instruction in self.instructions if instruction.opname.startswith("STORE_FAST")
                          for name in _names(instruction)])
        self.once = {name for name, times in stored.items() if times == 1 and name not in self.parameters}
        for name in stored.keys() - self.once:
            self.known.pop(name, None)             # assigned to: no longer what was passed

    def run(self) -> CodeReads:
        for instruction in self.instructions:
            if instruction.positions is not None and instruction.positions.lineno:
                self.line = instruction.positions.lineno
            if instruction.is_jump_target:
                self.stack = []
            self._step(instruction)
        places = [place for place, uses in self.places.items() if uses and (place.kind != "parameter" or place.steps)]
        inner = [code_reads(constant) for constant in self.code.co_consts if isinstance(constant, CodeType)]
        for reads in inner:                        # their parameters are their own, their cells may be ours
            places += [place for place in reads.places if place.kind == "global" or place.name in self.code.co_freevars]
        calls = self.calls + [call for reads in inner for call in reads.calls if call.function.kind == "global"]
        return CodeReads(tuple(dict.fromkeys(places)), tuple(calls), frozenset(place.name for place in places if place.kind == "parameter"),
                         frozenset(self.assigned.union(*[reads.assigned for reads in inner])),
                         (*self.files, *[found for reads in inner for found in reads.files]),
                         (*self.loose.items(), *[found for reads in inner for found in reads.loose if found[0] not in self.loose]),
                         frozenset(self.stored.union(*[reads.stored for reads in inner])),
                         frozenset(self.wide.union(*[reads.wide for reads in inner])))

    def _step(self, instruction: dis.Instruction) -> None:
        name, stack = instruction.opname, self.stack
        if name == "LOAD_CONST":
            stack.append(("constant", instruction.argval))
        elif name == "PUSH_NULL":
            stack.append(None)
        elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
            if instruction.argval in _WIDE:
                self.wide.add(instruction.argval)
            self._push(Place("global", instruction.argval, (), self.line), instruction, after=False)
        elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            self._push(Place("cell", instruction.argval, (), self.line), instruction)
        elif name.startswith("LOAD_FAST"):
            for variable in _names(instruction):
                self._push(self.known.get(variable), instruction, alone=True)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._attribute(instruction)
        elif name == "BINARY_SUBSCR" and len(stack) >= 2:
            key, owner = stack.pop(), stack.pop()
            constant = isinstance(key, tuple) and not isinstance(key, Place) and type(key[1]) in (int, str)
            self._push(self._extended(owner, "item", key[1]) if constant else None, instruction, alone=True)
        elif name == "STORE_FAST":
            value = stack.pop() if stack else None
            if instruction.argval in self.once and isinstance(value, Place):
                self.known[instruction.argval] = value
        else:
            if name in ("STORE_GLOBAL", "STORE_NAME", "STORE_DEREF"):
                self._assign(instruction.argval)
            if name == "STORE_ATTR" and stack and isinstance(stack[-1], Place):
                self._assign(f"{stack[-1].path}.{instruction.argval}")
            if name == "STORE_ATTR" and instruction.argval not in self.loose:
                self.stored.add(instruction.argval)
            if name == _CALL:
                self._call(instruction.arg or 0)
            self._other(instruction)

    def _attribute(self, instruction: dis.Instruction) -> None:
        """owner.name, of the owner on the stack."""
        owner = self.stack.pop() if self.stack else None
        if instruction.argval in _FILE_METHODS:
            self.files.append((instruction.argval, self.line))
        if instruction.argval in _WIDE:
            self.wide.add(instruction.argval)
        if not isinstance(owner, Place) or owner.kind == "parameter":
            self.loose.setdefault(instruction.argval, self.line)
        self._push(self._extended(owner, "attribute", instruction.argval), instruction)

    def _assign(self, path: str) -> None:
        if path not in self.read:
            self.assigned.add(path)

    def _extended(self, owner: Any, kind: str, key: Any) -> Place | None:
        """The place one step further; its beginning is not used as it is, then."""
        if not isinstance(owner, Place):
            return None
        self.places[owner] -= 1
        return owner._replace(steps=(*owner.steps, (kind, key)), line=self.line)

    def _push(self, place: Any, instruction: dis.Instruction, after: bool = True, alone: bool = False) -> None:
        """One operand, and the null or self that some loads push with it."""
        if isinstance(place, Place):
            self.places[place] = self.places.get(place, 0) + 1
            self.read.add(place.path)
        extra = 0 if alone else _pushed(instruction) - 1
        self.stack += [place, *[None] * extra] if after else [*[None] * extra, place]

    def _call(self, count: int) -> None:
        """Note a call: below its arguments lie the function and a null, in an order that depends on the version."""
        if len(self.stack) < count + 1:
            return
        arguments = self.stack[len(self.stack) - count:] if count else []
        below = self.stack[max(0, len(self.stack) - count - 2):len(self.stack) - count]
        function = next((entry for entry in below if isinstance(entry, Place)), None)
        if function is not None:
            if (function.kind, function.steps) == ("global", ()) and function.name in ("getattr", "hasattr") and count >= 2:
                self._attribute_by_name(*arguments[:2])
            self.calls.append(CallPlace(function, tuple([entry if isinstance(entry, Place) else None for entry in arguments])))

    def _attribute_by_name(self, owner: Any, name: Any) -> None:
        """getattr(owner, name)."""
        if not isinstance(name, tuple) or isinstance(name, Place) or type(name[1]) is not str:
            self.wide.add("getattr")
            return
        if not isinstance(owner, Place) or owner.kind == "parameter":
            self.loose.setdefault(name[1], self.line)
        found = self._extended(owner, "attribute", name[1])
        if found is not None:
            self.places[found] = self.places.get(found, 0) + 1

    def _other(self, instruction: dis.Instruction) -> None:
        """An instruction of which only the effect on the height of the stack is known."""
        try:
            effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        except ValueError:
            self.stack = []
            return
        height = max(0, len(self.stack) + effect)
        del self.stack[height:]
        unknown = min(height, max(1, effect + 1))
        self.stack[height - unknown:] = [None] * (height - len(self.stack[:height - unknown]))


def _names(instruction: dis.Instruction) -> tuple[str, ...]:
    """The variables of an instruction; some of Python 3.13 have two."""
    return instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)


def _pushed(instruction: dis.Instruction) -> int:
    """How many entries a load pushes."""
    effect = dis.stack_effect(instruction.opcode, instruction.arg)
    return max(1, effect + 1 if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") else effect)
