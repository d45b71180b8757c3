"""What a traced function reads from outside of its arguments: globals, variables of enclosing functions, attributes, items.

A compiled program holds what was found there while tracing, so every such read is repeated at every call, and the function
traced again where it finds something else (`bwcompiler.ir.contracts.call_signature.Read`).  Reads are found in the bytecode of the user's
functions: `code_reads.py` follows chains such as `net.layers[0].rate` from a global name, a variable of an enclosing function or
a parameter; `Outside` looks at what they lead to.  The functions are those that are called by such names, and all that run
while values are recorded (`Outside.frame`).

Reads that Python hides (getattr with a computed name, vars(), C code) are not seen.
"""

from __future__ import annotations

import array
import collections
import ctypes
import functools
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.errors import StaleValueWarning, at
from bwcompiler.frontend.tracing.code_reads import Place, code_reads
from bwcompiler.frontend.tracing.source import is_hidden, is_library, is_library_file, levels_to_the_user, original_code
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import Read, is_plain, items_of
from bwcompiler.ir.source import Source

LIMIT = 512                    # reads that are repeated; containers with more items are read once
DEPTH = 4                      # of containers in containers
_MERSENNE_BYTES = 4 * 624 + 4  # NumPy's mt19937_state: the key and the position in it

_NAMESPACES = frozenset(("types.SimpleNamespace", "argparse.Namespace"))          # whose attributes are the user's
_WRITERS = frozenset(("add", "append", "clear", "discard", "extend", "insert", "remove", "setdefault", "update"))


class OutsideRead(NamedTuple):
    """A read that is repeated at every call.  path: how the user writes it; source: where."""

    read: Read
    path: str
    source: Source | None


class Outside:
    """Everything that the functions of one trace read from outside.

    reads    by what is read (`Read.place`).
    settled  code objects whose frames hold nothing new.
    once     functions that give something else in each call: clocks, and what reads files.
    """

    def __init__(self) -> None:
        self.reads: dict[Any, OutsideRead] = {}
        self.settled: set[CodeType] = set()
        self._seen: set[Any] = set()
        self._assigned: set[tuple[str, str, str]] = set()       # (file, function, path) that are assigned to before they are read
        self._frames: dict[CodeType, FrameType] = {}
        self._memory: dict[tuple[int, int], _Memory] = {}
        self._arrays: dict[int, Any] = {}          # of these by their ids, those that are no views
        self._generators: dict[int, tuple[Any, Any, Source | None, str]] = {}
        self._once: dict[Any, tuple[Source, str]] = {}
        self._legacy = _legacy_state()

    def static_argument(self, value: Any, path: str) -> None:
        """What an argument holds that is compiled in though it may change: a set, a buffer, a generator of random numbers."""
        self._generator(value, path, None)
        if _is_collection(value):
            self._contents(value, path, None, DEPTH)
        elif isinstance(value, _BUFFERS):
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
            method = _class_attribute(type(fun), "__call__")
            if isinstance(method, types.FunctionType):
                self.function(method, (fun, *bound))

    def _plain_function(self, fun: types.FunctionType, bound: Sequence[Any]) -> None:
        code = fun.__code__
        if is_hidden(code):
            if hasattr(fun, "__wrapped__"):
                self.function(fun.__wrapped__, bound)
            return
        if is_library(code):
            return
        cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True))
        self._code(code, fun.__globals__, cells, dict(zip(code.co_varnames[:code.co_argcount], bound, strict=False)))

    def frame(self, frame: FrameType) -> None:
        """What a running function of the user's reads."""
        code = original_code(frame.f_code)
        if code is None:                           # of a loop's body: the function around it is seen too
            self.settled.add(frame.f_code)
            return
        if self._frames.get(code) is frame:
            return
        reads = code_reads(code)
        if is_library(code):
            self.settled.add(frame.f_code)
            return
        if not reads.parameters and not code.co_freevars:
            self.settled.add(frame.f_code)
            self._code(code, frame.f_globals, {}, {})
            return
        self._frames[code] = frame
        values = frame.f_locals
        region = active_region()
        made = {} if region is None or region.policy is None else region.policy.objects
        parameters = {name: values[name] for name in reads.parameters      # containers may be arguments, made for this trace
                      if name in values and not isinstance(values[name], list | dict | tuple | Tracer) and id(values[name]) not in made}
        self._code(code, frame.f_globals, {}, parameters)

    def snapshots(self) -> list[dict[str, Any]]:
        """What Python keeps of the variables of frames that were looked at (until 3.12), and refers to."""
        found = [frame.f_locals for frame in self._frames.values()]
        return [values for values in found if type(values) is dict]

    def _code(self, code: CodeType, names: dict[str, Any], cells: dict[str, Any], parameters: dict[str, Any]) -> None:
        key = (code, tuple([(name, id(value)) for name, value in parameters.items()]), tuple(map(id, cells.values())))
        if key in self._seen:
            return
        self._seen.add(key)
        self._assigned.update([(code.co_filename, code.co_name, path) for path in code_reads(code).assigned])
        scope = _Scope(code, names, cells, parameters)
        for name, line in code_reads(code).files:
            self._once.setdefault((code, name), (Source(code.co_filename, line, 0, code.co_name), name))
        for place in code_reads(code).places:
            self._follow(place, scope, contents=True)
        for call in code_reads(code).calls:
            found = self._follow(call.function, scope, contents=False)
            if isinstance(found, types.FunctionType | types.MethodType):
                arguments = [_MISSING if place is None else self._follow(place, scope, contents=False) for place in call.arguments]
                self.function(found, arguments)

    # ----- arrays
    def array(self, array: np.ndarray[Any, Any], source: Callable[[], Source | None]) -> None:
        """What a concrete array holds is read while tracing: its memory is compared at every call, if others have it too."""
        if id(array) in self._arrays or array.size == 0 or array.dtype.hasobject or _is_frozen(array):
            return
        if array.base is None:
            self._arrays[id(array)] = array
        memory = memory_of(array)
        key = (memory.__array_interface__["data"][0], memory.size)
        if key not in self._memory:
            self._memory[key] = _Memory(_owner(array), memory, memory.tobytes(), source())

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
            self._generator(value, path, source)
            value, path = (self._attribute(value, key, f"{path}.{key}", source), f"{path}.{key}") if kind == "attribute" else (
                self._item(value, key, f"{path}[{key!r}]", source), f"{path}[{key!r}]")
        if (contents and place.kind != "parameter") or place.steps:
            self._value(value, path, source)
        return value

    def _global(self, name: str, names: dict[str, Any], source: Source) -> Any:
        if name not in names:
            if name in ("open", "input"):          # of Python's own
                self._once.setdefault(name, (source, name))
            return _MISSING
        return self._guard(Read("global", names, name, names[name]), name, source)

    def _cell(self, name: str, scope: _Scope, source: Source) -> Any:
        cell = scope.cells.get(name)
        try:
            return _MISSING if cell is None else self._guard(Read("cell", cell, None, cell.cell_contents), name, source)
        except ValueError:                         # not assigned yet
            return _MISSING

    def _attribute(self, owner: Any, name: str, path: str, source: Source) -> Any:
        if isinstance(owner, types.ModuleType):
            return self._module_attribute(owner, name, path, source)
        if isinstance(owner, np.ndarray | np.generic | Tracer) or is_plain(owner):
            return _MISSING
        if _is_collection(owner):                  # a method of a container reads all of it
            if name not in _WRITERS:
                self._contents(owner, path, source, DEPTH)
            return _MISSING
        cls = owner if isinstance(owner, type) else type(owner)
        if is_hidden_type(cls):
            return _MISSING
        defined = _class_attribute(cls, name)
        if isinstance(defined, property):
            if defined.fget is not None:
                self.function(defined.fget, (owner,))
            return _MISSING
        if isinstance(defined, types.FunctionType) and name not in getattr(owner, "__dict__", {}):
            self._guard(Read("attribute", cls, name, defined), path, source)
            return types.MethodType(defined, owner) if cls is not owner else defined
        try:
            value = object.__getattribute__(owner, name) if cls is not owner else getattr(owner, name)
        except AttributeError:
            return _MISSING
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            return value
        return self._guard(Read("attribute", owner, name, value), path, source)

    def _module_attribute(self, module: types.ModuleType, name: str, path: str, source: Source) -> Any:
        value = vars(module).get(name, _MISSING)
        file = getattr(module, "__file__", None)
        if is_library_file(file) if file is not None else module.__name__ in sys.stdlib_module_names:    # no file: made by hand
            return value
        return _MISSING if value is _MISSING else self._guard(Read("global", vars(module), name, value), path, source)

    def _item(self, owner: Any, key: Any, path: str, source: Source) -> Any:
        kind = _container(owner)
        if kind is dict and key in owner:
            if type(key) is str:
                return self._guard(Read("entry", owner, key, owner[key]), path, source)
            self._contents(owner, path, source, DEPTH)
            return owner[key]
        if kind is list and type(key) is int and -len(owner) <= key < len(owner):
            if key < 0:
                self._guard(Read("size", owner, None, len(owner)), path, source)
            return self._guard(Read("item", owner, key % len(owner), owner[key]), path, source)
        if type(owner) is tuple and type(key) is int and -len(owner) <= key < len(owner):
            return owner[key]
        if _is_collection(owner):
            self._contents(owner, path, source, DEPTH)
        return _MISSING

    # ----- values
    def _guard(self, read: Read, path: str, source: Source | None) -> Any:
        """Note the read, and give what it finds."""
        key = read.place
        if key not in self.reads and len(self.reads) < LIMIT and not isinstance(read.expected, Tracer):
            self.reads[key] = OutsideRead(read, path, source)
        return read.expected

    def _value(self, value: Any, path: str, source: Source) -> None:
        """What else belongs to a value that is used as it is."""
        if _is_collection(value):
            self._contents(value, path, source, DEPTH)
        elif isinstance(value, _BUFFERS):
            self._buffer(value, source)
        elif _gives_other_things(value):
            self._once.setdefault(value, (source, path))
        elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
            self.function(value)
        self._generator(getattr(value, "__self__", value), path, source)

    def _buffer(self, buffer: Any, source: Source | None) -> None:
        view = memoryview(buffer)
        self.array(np.frombuffer(view, np.uint8) if view.c_contiguous and view.nbytes else np.asarray(view), lambda: source)

    def _generator(self, value: Any, path: str, source: Source | None) -> None:
        """Note the state of a random number generator."""
        state = _generator_state(value)
        if state is not None:
            self._generators.setdefault(id(value), (value, state, source, path))

    def _contents(self, container: Any, path: str, source: Source | None, depth: int) -> None:
        """Guards for all items of a container."""
        if depth == 0 or not _is_collection(container):
            return
        if isinstance(container, _WRAPPERS):
            name = "maps" if isinstance(container, collections.ChainMap) else "data"
            self._contents(self._guard(Read("attribute", container, name, getattr(container, name)), path, source), path, source, depth)
            return
        kind = _container(container)
        items: list[tuple[Any, Any]] = list(container.items() if hasattr(container, "items") else enumerate(container))
        one_by_one = kind is not None and len(self.reads) + len(items) <= LIMIT and (
            kind is list or all(type(key) is str for key, _ in items))
        if not one_by_one:
            self._guard(Read("items", container, None, items_of(container)), path, source)
        else:
            self._guard(Read("size", container, None, len(items)), path, source)
        for key, value in items:
            if one_by_one:
                self._guard(Read("entry" if kind is dict else "item", container, key, value), f"{path}[{key!r}]", source)
            self._contents(value, f"{path}[{key!r}]", source, depth - 1)

    # ----- afterwards
    def settle(self) -> list[OutsideRead]:
        """The reads to repeat.  Warns of what changed while the function was traced, and of what cannot be read again."""
        self._frames.clear()
        kept = []
        for found in self.reads.values():
            if found.read.holds():
                kept.append(found)
            elif not (isinstance(found.read.look(), Tracer) and self._is_assigned_first(found)):
                _warn(found.source, f"{found.path} is assigned to while the function is traced: compiled calls neither repeat that nor "
                      "read it again\n  hint: return the new value instead of storing it, and pass the old one as an argument")
        self._arrays.clear()
        for memory in self._memory.values():
            if not _is_alone(memory):
                path = next((one.path for one in self.reads.values() if one.read.expected is memory.owner), "an array")
                kept.append(OutsideRead(Read("bytes", memory.view, None, memory.content), path, memory.source))
        self._memory.clear()
        for generator, state, source, path in self._generators.values():
            if not _same_state(_generator_state(generator), state):
                _warn(source, f"{path} gives random numbers while the function is traced: they are the same in every call\n"
                      "  hint: draw them outside, and pass them as an argument")
        for source, path in self._once.values():
            _warn(source, f"{path} is called while the function is traced only: compiled calls go on with what it gave then\n"
                  "  hint: call it outside, and pass the result as an argument")
        if any(now != before for now, before in zip(_legacy_state(), self._legacy, strict=True) if before is not None) or (
                self._legacy[0] is None and _has_drawn()):
            place = next((found.source for found in self.reads.values()), None)
            _warn(place, "random numbers were drawn from np.random or random while the function was traced: they are the same in "
                  "every call\n  hint: draw them outside, and pass them as an argument")
        return kept


    def _is_assigned_first(self, found: OutsideRead) -> bool:
        """Whether what was there before the call was never read."""
        return found.source is not None and (found.source.file, found.source.function, found.path) in self._assigned


_MISSING = object()


class _Scope(NamedTuple):
    code: CodeType
    names: dict[str, Any]
    cells: dict[str, Any]
    parameters: dict[str, Any]


def _container(value: Any) -> type | None:
    """dict or list, where value is one whose items are read as from one: an OrderedDict, a defaultdict, a class of the user's."""
    for kind in (dict, list):
        if isinstance(value, kind) and type(value).__getitem__ is kind.__getitem__:
            return kind
    return None


_WRAPPERS = (collections.UserDict, collections.UserList, collections.ChainMap)
_BUFFERS = (memoryview, ctypes.Array)
_COLLECTIONS = (dict, list, set, collections.deque, array.array, bytearray, types.MappingProxyType, *_WRAPPERS)


def _is_collection(value: Any) -> bool:
    """Whether it is a container that may change, other than an array of NumPy's; of the user's own classes those with Python's items."""
    if not isinstance(value, _COLLECTIONS):
        return False
    base = next(kind for kind in _COLLECTIONS if isinstance(value, kind))
    mine, theirs = [getattr(kind, "__getitem__", None) or kind.__iter__ for kind in (type(value), base)]
    return mine is theirs or type(value).__module__ == "collections"


class _Memory(NamedTuple):
    """Memory that is read: view is of its bytes, owner the array whose it is, content what it held."""

    owner: Any
    view: np.ndarray[Any, Any]
    content: bytes
    source: Source | None


def _owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _is_frozen(array: Any) -> bool:
    """Whether nobody can write to an array."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def memory_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From the first byte of an array to its last, gaps included."""
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    forwards = array[tuple([slice(None, None, -1 if stride < 0 else 1) for stride in array.strides])]
    length = sum((extent - 1) * stride for extent, stride in zip(forwards.shape, forwards.strides, strict=True)) + array.itemsize
    first = forwards[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (length,), (1,), writeable=False)


def _is_alone(memory: _Memory) -> bool:
    """Whether nobody else has the array: what the function made, that is gone."""
    return sys.getrefcount(memory.owner) <= _ALONE and memory.owner.base is None


def _references() -> int:
    array = np.zeros(2)
    made = _Memory(array, memory_of(array), b"", None)
    del array
    return sys.getrefcount(made.owner)


_ALONE = _references()


def can_be_replaced(read: Read) -> bool:
    """Whether a handle can be put in the place of the number that is read, for as long as a trace takes."""
    if read.kind == "attribute":
        return not isinstance(read.base, type) and read.key in getattr(read.base, "__dict__", {})
    return read.kind not in ("size", "items", "bytes")


def _warn(source: Source | None, message: str) -> None:
    warnings.warn(at(source, message), StaleValueWarning, stacklevel=levels_to_the_user())


def is_hidden_type(cls: type) -> bool:
    """Whether a class is not the user's own, and its attributes neither."""
    if f"{cls.__module__}.{cls.__qualname__}" in _NAMESPACES:
        return False
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if module is None or cls.__module__ == "__main__" or file is None:
        return cls.__module__ in ("builtins", "types", "functools")
    return is_library_file(file)


def _class_attribute(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None


def _gives_other_things(value: Any) -> bool:
    """Whether it is a function that may give something else in each call: a clock, or what reads a file."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module == "numpy":
        return name in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap")
    clock = (module == "time" and name != "sleep") or name in ("now", "utcnow", "today")
    return value is open or (clock and isinstance(value, types.BuiltinFunctionType))


def _generator_state(value: Any) -> Any:
    """The state of a random number generator, NumPy's of either kind or Python's; None of anything else."""
    numpy, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    if numpy is not None and isinstance(value, numpy.Generator):
        return value.bit_generator.state
    if numpy is not None and isinstance(value, numpy.RandomState):
        return value.get_state(legacy=False)
    return value.getstate() if python is not None and type(value) is python.Random else None


def _legacy_state() -> Any:
    """The states of np.random's and random's own generators, where these modules have been imported; as bytes: at every trace."""
    module = sys.modules.get("numpy.random.mtrand")
    numbers = None if module is None else ctypes.string_at(module._rand._bit_generator.ctypes.state_address, _MERSENNE_BYTES)
    python = sys.modules.get("random")
    return numbers, None if python is None else python.getstate()


def _has_drawn() -> bool:
    """Whether np.random's own generator, made since, has given numbers: NumPy imports np.random when it is first named."""
    module = sys.modules.get("numpy.random.mtrand")
    places = [] if module is None else [made.get_state(legacy=False)["state"]["pos"] for made in (module._rand, module.RandomState())]
    return len(set(places)) > 1


def _same_state(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same_state(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)

