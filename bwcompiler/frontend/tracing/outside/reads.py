"""Values that a traced function reads from outside of its arguments: globals, variables of enclosing functions, attributes, items.

A compiled program contains what these reads gave while tracing.  So every call repeats them, and the function is
traced again if one gives something else (`bwcompiler.ir.contracts.call_signature.Read`).  Reads are found in the bytecode of the user's
functions: `code_reads.py` follows chains such as `net.layers[0].rate` from a global name, a variable of an enclosing function or
a parameter; `Outside` examines the objects found.  The functions are those that are called by such names, and all that run
while values are recorded (`Outside.frame`).

If names are computed (getattr, vars), all attributes of the objects that were met are read.  Reads inside C code are not seen.
"""

from __future__ import annotations

import collections
import contextvars
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.tracing.outside.before import Before
from bwcompiler.frontend.tracing.outside.code_reads import Place, code_reads
from bwcompiler.frontend.tracing.outside.contents import ArrayContents
from bwcompiler.frontend.tracing.outside.generators import Generators
from bwcompiler.frontend.tracing.outside.kinds import (
    BUFFERS,
    WRAPPERS,
    container_kind,
    gives_other_things,
    is_collection,
    is_hidden_type,
    is_operand,
    special_methods,
)
from bwcompiler.frontend.tracing.outside.objects import MetObjects
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead, RepeatedReads
from bwcompiler.frontend.tracing.provenance.source import is_hidden, is_library, is_library_file, original_code
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import FUNCTION_PARTS, NOTHING, Read, is_plain, items_of
from bwcompiler.ir.contracts.plain_objects import class_attribute
from bwcompiler.ir.source import Source

ONE_BY_ONE = 512               # of the reads, items of containers: more are compared all at once
DEPTH = 4                      # of containers in containers

_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
_WRITERS = frozenset(("add", "append", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"))


class Outside:
    """Everything that the functions of one trace read from outside.

    settled     code objects whose frames hold nothing new, by their ids; latest: by those of others the frame that was looked at last.
    repeated    the reads that every call repeats, and those that none can repeat.
    before      what there was, of what is met.
    """

    def __init__(self, before: Before) -> None:
        self.before = before
        self.settled: dict[int, CodeType] = {}
        self.repeated = RepeatedReads()
        self._seen: set[Any] = set()
        self.latest: dict[int, FrameType] = {}
        self._arrays = ArrayContents()
        self._generators = Generators()
        self._objects = MetObjects()

    def made(self, containers: Iterable[Any]) -> None:
        """They stand for others while the function is traced."""
        self.repeated.stand_ins.update([(id(one), one) for one in containers])

    def static_argument(self, value: Any, path: str) -> None:
        """What an argument holds that is compiled in though it may change: a set, a buffer, a generator of random numbers."""
        self._generators.note(value, path, None)
        if is_collection(value):
            self._contents(value, path, None, DEPTH)
        elif isinstance(value, BUFFERS):
            self._buffer(value, None)

    # ----- functions
    def function(self, fun: Any, bound: Sequence[Any] = ()) -> None:
        """What a callable of the user's reads; `bound` are its first positional arguments, as far as they are known."""
        if isinstance(fun, functools.partial):
            self.function(fun.func, (*fun.args, *bound))
        elif isinstance(fun, types.MethodType):
            self.function(fun.__func__, (fun.__self__, *bound))
        elif isinstance(fun, types.FunctionType):
            self._plain_function(fun, bound)
        elif hasattr(fun, "__wrapped__"):
            self.function(fun.__wrapped__, bound)
        elif not isinstance(fun, type):
            method = class_attribute(type(fun), "__call__")
            if isinstance(method, types.FunctionType):
                self.function(method, (fun, *bound))

    def _plain_function(self, fun: types.FunctionType, bound: Sequence[Any]) -> None:
        code = fun.__code__
        key = (fun, code, tuple(map(id, bound)))
        if key in self._seen:
            return
        self._seen.add(key)
        if is_hidden(code):
            if hasattr(fun, "__wrapped__"):
                self.function(fun.__wrapped__, bound)
            return
        if is_library(code):
            return
        cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True))
        self._made_of(fun)
        self._defaults(fun)
        self._code(code, fun.__globals__, cells, dict(zip(code.co_varnames[:code.co_argcount], bound, strict=False)))

    def _made_of(self, fun: types.FunctionType) -> None:
        """Its code and defaults, which notebooks that reload modules put into functions that are there (IPython's autoreload)."""
        source = Source(fun.__code__.co_filename, fun.__code__.co_firstlineno, 0, fun.__code__.co_name)
        for name in FUNCTION_PARTS:
            value = getattr(fun, name)
            if value is not None:
                self.repeated.guard(Read("attribute", fun, name, value), f"{fun.__name__}.{name}", source)

    def _defaults(self, fun: types.FunctionType) -> None:
        """What defaults of parameters hold (`def f(x, seen=[])`): there is one for all calls."""
        code, given = fun.__code__, fun.__defaults__ or ()
        last = code.co_varnames[code.co_argcount - len(given):code.co_argcount]
        for name, value in (*zip(last, given, strict=True), *(fun.__kwdefaults__ or {}).items()):
            if is_plain(value):
                continue
            steps = [place.steps[:1] for place in code_reads(code).places if place.kind == "parameter" and place.name == name]
            loads = sum(one.opname == "LOAD_FAST" and one.argval == name for one in dis.get_instructions(code))
            is_only_written = loads == len(steps) > 0 and all(
                step and step[0][0] == "attribute" and step[0][1] in _WRITERS for step in steps)
            if not is_only_written:
                self._value(value, name, Source(code.co_filename, code.co_firstlineno, 0, code.co_name))

    def frame(self, frame: FrameType) -> None:
        """What a running function of the user's reads."""
        code = original_code(frame.f_code)
        if code is None:                           # of a loop's body: the function around it is seen too
            self.settled[id(frame.f_code)] = frame.f_code
            return
        reads = code_reads(code)
        if is_library(code):
            self.settled[id(frame.f_code)] = frame.f_code
            return
        if not reads.parameters and not code.co_freevars:
            self.settled[id(frame.f_code)] = frame.f_code
            self._code(code, frame.f_globals, {}, {})
            return
        self.latest[id(frame.f_code)] = frame
        values = frame.f_locals
        region = active_region()
        made = {} if region is None or region.policy is None else region.policy.objects
        parameters = {name: values[name] for name in reads.parameters      # containers may be arguments, made for this trace
                      if name in values and not isinstance(values[name], list | dict | tuple | Tracer) and id(values[name]) not in made}
        self._code(code, frame.f_globals, {}, parameters)

    def snapshots(self) -> list[dict[str, Any]]:
        """What Python keeps of the variables of frames that were looked at (until 3.12), and refers to."""
        found = [frame.f_locals for frame in self.latest.values()]
        return [values for values in found if type(values) is dict]

    def _code(self, code: CodeType, names: dict[str, Any], cells: dict[str, Any], parameters: dict[str, Any]) -> None:
        key = (code, tuple([(name, id(value)) for name, value in parameters.items()]), tuple(map(id, cells.values())))
        if key in self._seen:
            return
        self._seen.add(key)
        self.repeated.assigned.update([(code.co_filename, code.co_name, path) for path in code_reads(code).assigned])
        for name in code_reads(code).assigned:
            if name in cells:
                self.before.note_cell(cells[name])
            elif name.isidentifier():
                self.before.note_name(names, name)
        scope = _Scope(code, names, cells, parameters)
        for name, line in code_reads(code).files:
            self.repeated.note_once((code, name), name, Source(code.co_filename, line, 0, code.co_name))
        for place in code_reads(code).places:
            self._follow(place, scope, contents=True)
        source = Source(code.co_filename, code.co_firstlineno, 0, code.co_name)
        for name, value in parameters.items():
            self._object(value, name)
        for call in code_reads(code).calls:
            found = self._follow(call.function, scope, contents=False)
            if isinstance(found, types.FunctionType | types.MethodType):
                arguments = [_MISSING if place is None else self._follow(place, scope, contents=False) for place in call.arguments]
                self.function(found, arguments)
        self._objects.stored.update(code_reads(code).stored)
        if "globals" in code_reads(code).wide:
            for name, value in list(names.items()):
                if is_operand(value):
                    self._value(self._global(name, names, source), name, source)
        if code_reads(code).wide - {"globals"}:
            self._objects.read_all(source, self._attribute_of)
        for name, line in code_reads(code).loose:
            self._objects.read_name(name, Source(code.co_filename, line, 0, code.co_name), self._attribute_of)

    # ----- objects
    def _object(self, value: Any, path: str) -> None:
        """An object that is used as it is: whatever has attributes of these names may be where they are read."""
        if self._objects.is_new(value):
            self.before.note(value)
            self._objects.meet(value, path)
            for method in special_methods(value):
                self.function(method, (value,))
            self._objects.read_attributes(value, self._attribute_of)

    def _attribute_of(self, owner: Any, name: str, path: str, source: Source) -> None:
        """An attribute that is read of what no place says, and what is found there."""
        value = self._attribute(owner, name, path, source)
        if isinstance(value, types.MethodType):
            self.function(value)
        elif value is not _MISSING:
            self._value(value, path, source)

    # ----- arrays
    def array(self, array: np.ndarray[Any, Any], source: Callable[[], Source | None]) -> None:
        """What a concrete array holds is read while tracing: its memory is compared at every call, if others have it too."""
        self._arrays.note(array, source)

    def as_written(self, function: types.FunctionType) -> None:
        """A function that runs as it is written, where nobody sees what it does: it reads what the arrays hold that it names."""
        code = function.__code__
        if is_library(code) or (code, True) in self._seen:
            return
        self._seen.add((code, True))
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        scope = _Scope(code, function.__globals__, cells, {})
        for place in code_reads(code).places:
            found = self._follow(place, scope, contents=True)
            if isinstance(found, np.ndarray):
                self.array(found, functools.partial(Source, code.co_filename, place.line, 0, code.co_name))

    # ----- chains
    def _follow(self, place: Place, scope: _Scope, contents: bool) -> Any:
        """What a chain leads to, with a guard for every link; `_MISSING` where it leaves what can be guarded."""
        source = Source(scope.code.co_filename, place.line, 0, scope.code.co_name)
        if place.kind == "parameter":
            value = scope.parameters.get(place.name, _MISSING)
        elif place.kind == "cell":
            value = self._cell(place.name, scope, source)
        else:
            value = self._global(place.name, scope.names, source)
        path = place.name
        for kind, key in place.steps:
            if value is _MISSING or isinstance(value, Tracer):
                return _MISSING
            self._generators.note(value, path, source)
            value, path = (self._attribute(value, key, f"{path}.{key}", source), f"{path}.{key}") if kind == "attribute" else (
                self._item(value, key, f"{path}[{key!r}]", source), f"{path}[{key!r}]")
        if (contents and place.kind != "parameter") or place.steps:
            self._value(value, path, source)
        return value

    def _global(self, name: str, names: dict[str, Any], source: Source) -> Any:
        self.before.note_name(names, name)
        if name not in names:
            if name in ("open", "input"):          # of Python's own
                self.repeated.note_once(name, name, source)
            return _MISSING
        return self.repeated.guard(Read("global", names, name, names[name]), name, source)

    def _cell(self, name: str, scope: _Scope, source: Source) -> Any:
        cell = scope.cells.get(name)
        try:
            if cell is not None:
                self.before.note_cell(cell)
            return _MISSING if cell is None else self.repeated.guard(Read("cell", cell, None, cell.cell_contents), name, source)
        except ValueError:                         # not assigned yet
            return _MISSING

    def _attribute(self, owner: Any, name: str, path: str, source: Source) -> Any:
        if isinstance(owner, types.ModuleType):
            return self._module_attribute(owner, name, path, source)
        if isinstance(owner, np.ndarray | np.generic | Tracer) or is_plain(owner):
            return _MISSING
        self.before.note(owner)
        if is_collection(owner):                  # a method of a container reads all of it
            if name not in _WRITERS:
                self._contents(owner, path, source, DEPTH)
            elif id(owner) not in self.repeated.stand_ins:
                self.repeated.note_written(owner, path.removesuffix(f".{name}"), source)
            return _MISSING
        cls = owner if isinstance(owner, type) else type(owner)
        if isinstance(owner, contextvars.ContextVar) and name == "get":
            self.repeated.note_once(owner, path, source)
        of_function = (isinstance(owner, types.FunctionType) and (name in owner.__dict__ or not hasattr(types.FunctionType, name))
                       and not is_library(owner.__code__))
        if is_hidden_type(cls) and not of_function:
            return _MISSING
        defined = class_attribute(cls, name)
        if isinstance(defined, property):
            if defined.fget is not None:
                self.function(defined.fget, (owner,))
            return _MISSING
        if isinstance(defined, types.FunctionType) and name not in getattr(owner, "__dict__", {}):
            self.repeated.guard(Read("attribute", cls, name, defined), path, source)
            return types.MethodType(defined, owner) if cls is not owner else defined
        try:
            value = object.__getattribute__(owner, name) if cls is not owner else getattr(owner, name)
        except AttributeError:
            method = class_attribute(type(owner), "__getattr__")
            if isinstance(method, types.FunctionType):
                self.function(method, (owner,))
            else:                                                          # getattr(x, name, default), hasattr: until there is one
                self.repeated.guard(Read("attribute", owner, name, NOTHING), path, source)
            return _MISSING
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            return value
        return self.repeated.guard(Read("attribute", owner, name, value), path, source)

    def _module_attribute(self, module: types.ModuleType, name: str, path: str, source: Source) -> Any:
        value = vars(module).get(name, _MISSING)
        file = getattr(module, "__file__", None)
        if is_library_file(file) if file is not None else module.__name__ in sys.stdlib_module_names:    # no file: made by hand
            return value
        return _MISSING if value is _MISSING else self.repeated.guard(Read("global", vars(module), name, value), path, source)

    def _item(self, owner: Any, key: Any, path: str, source: Source) -> Any:
        self.before.note(owner)
        kind = container_kind(owner)
        if kind is dict and key in owner:
            if type(key) is str:
                return self.repeated.guard(Read("entry", owner, key, owner[key]), path, source)
            self._contents(owner, path, source, DEPTH)
            return owner[key]
        if kind is list and type(key) is int and -len(owner) <= key < len(owner):
            if key < 0:
                self.repeated.guard(Read("size", owner, None, len(owner)), path, source)
            return self.repeated.guard(Read("item", owner, key % len(owner), owner[key]), path, source)
        if type(owner) is tuple and type(key) is int and -len(owner) <= key < len(owner):
            return owner[key]
        if is_collection(owner):
            self._contents(owner, path, source, DEPTH)
        self._object(owner, path)          # of a class of the user's, with items of its own
        return _MISSING

    # ----- values
    def _value(self, value: Any, path: str, source: Source | None, depth: int = DEPTH) -> None:
        """What else belongs to a value that is used as it is."""
        if type(value) is types.ModuleType:        # most often, and it has nothing
            return
        if is_collection(value):
            self._contents(value, path, source, depth)
        elif isinstance(value, tuple) and depth:
            for number, item in enumerate(value):
                self._value(item, f"{path}[{number}]", source, depth - 1)
        elif isinstance(value, BUFFERS):
            self._buffer(value, source)
        elif gives_other_things(value):
            self.repeated.note_once(value, path, source)
        elif isinstance(value, _FUNCTIONS):
            self.function(value)
        else:
            self._object(value, path)
        self._generators.note(value.__self__ if isinstance(value, types.MethodType | types.BuiltinMethodType) else value, path, source)

    def _buffer(self, buffer: Any, source: Source | None) -> None:
        view = memoryview(buffer)
        self.array(np.frombuffer(view, np.uint8) if view.c_contiguous and view.nbytes else np.asarray(view), lambda: source)

    def _contents(self, container: Any, path: str, source: Source | None, depth: int) -> None:
        """Guards for all items of a container."""
        if depth == 0 or not is_collection(container):
            return
        if isinstance(container, WRAPPERS):
            name = "maps" if isinstance(container, collections.ChainMap) else "data"
            wrapped = self.repeated.guard(Read("attribute", container, name, getattr(container, name)), path, source)
            self._contents(wrapped, path, source, depth)
            return
        self.before.note(container)
        kind = container_kind(container)
        items: list[tuple[Any, Any]] = list(container.items() if hasattr(container, "items") else enumerate(container))
        one_by_one = kind is not None and len(self.repeated.reads) + len(items) <= ONE_BY_ONE and (
            kind is list or (not isinstance(container, collections.OrderedDict) and all(type(key) is str for key, _ in items)))
        if not one_by_one:
            self.repeated.guard(Read("items", container, None, items_of(container)), path, source)
        elif kind is dict:
            self.repeated.guard(Read("keys", container, None, tuple([key for key, _ in items])), path, source)
        else:
            self.repeated.guard(Read("size", container, None, len(items)), path, source)
        for key, value in items:
            if one_by_one:
                self.repeated.guard(Read("entry" if kind is dict else "item", container, key, value), f"{path}[{key!r}]", source)
            if not is_plain(value):
                self._value(value, f"{path}[{key!r}]", source, depth - 1)

    # ----- afterwards
    def settle(self) -> list[OutsideRead]:
        """The reads to repeat.  Warns of what changed while the function was traced, and of what cannot be read again."""
        self.latest.clear()
        reads = self.repeated
        kept = reads.settle(self._objects.is_stored_to)
        for memory in self._arrays.settle():
            path = next((one.path for one in reads.reads.values() if one.read.expected is memory.owner), "an array")
            # what the function itself has changed since is changed in each call: nothing is as it was then, not even with the same contents
            same = memory.view.tobytes() == memory.content
            read = Read("bytes", memory.view, None, memory.content) if same else Read("size", [], None, 1)
            kept.append(OutsideRead(read, path, memory.source))
        self._generators.warn(next((found.source for found in reads.reads.values()), None))
        reads.warn()
        return kept


_MISSING = object()


class _Scope(NamedTuple):
    code: CodeType
    names: dict[str, Any]
    cells: dict[str, Any]
    parameters: dict[str, Any]
