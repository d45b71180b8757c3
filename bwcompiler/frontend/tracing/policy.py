"""How control flow is captured in one trace (`Policy`), and what asks for tracing the function again, and something of it otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bwcompiler.errors import BwError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.op import Value
from bwcompiler.ir.source import Source

Site: TypeAlias = tuple[str, int, int]      # file, line and column, or in its place
FUNCTION = -1 << 20                         # for a function that is called as a loop (`source.recursion`),
SERIAL = -1 << 21                           # minus how often it was traced again for containers with room (`source.bounded.sites`),
INSTRUCTION = -1 << 22                      # minus the number of the instruction that makes such a container


class Recapture(BaseException):
    """The function has to be traced again, and something of it otherwise (`Policy.unrolled`).

    A value that was made in one iteration of a captured loop was used outside of it, so that the loop has to be unrolled; or
    an array that the function made is to take traced values, so that it has to be a traced one.
    site  of the loop, or of the call that made the array; `refusal` is the error where that has been done already.
    more  sites of the same kind, for which the function would have to be traced again later; foreseen: likewise, most probably.
    why   in words, for `explain`.
    """

    def __init__(self, site: Site, refusal: Exception, more: Sequence[Site] = (), foreseen: Sequence[Site] = (),
                 why: str = "a value of one iteration is used outside of the loop") -> None:
        super().__init__(str(refusal))
        self.why = why
        self.site = site
        self.more = more
        self.foreseen = foreseen
        self.refusal = refusal


class Reconsidered(Recapture):
    """A short loop was unrolled, and its first iteration is so long that it had better be recorded (`Policy.heavy`), and so had `more`."""

    def __init__(self, site: Site, more: Sequence[Site] = ()) -> None:
        BaseException.__init__(self, "a loop is to be recorded from its first iteration on")
        self.site = site
        self.more = more


class MovesWithData(Recapture):
    """The indices of loops are to be data (`Policy.by_data`): by them, a function reads places that is called where they are unknown."""

    def __init__(self, sites: Sequence[Site]) -> None:
        BaseException.__init__(self, "the index of a loop is to be data")
        self.sites = sites


class Misremembered(Recapture):
    """A loop cannot be recorded as it was before (`Policy.carrying`, which has been told): the function is traced again."""

    def __init__(self, site: Site) -> None:
        BaseException.__init__(self, "a loop is not what it was")
        self.site = site


class Assumed(NamedTuple):
    """A number that is taken for what it is for the arguments of a call, and the line that needs it."""

    number: bool | int
    source: Source | None


class Policy:
    """How control flow is captured in one trace, regions inside of it included.

    What `__init__` sets stays from one attempt to trace the function to the next; what `restart` sets is of one attempt.
    """

    def __init__(self, converting: bool) -> None:
        # what is asked for
        self.converting = converting                                # whether the user's functions are rewritten at all,
        self.loops = True                                           # and loops whose length is known are captured
        self.windows = False                                        # whether slices may be `data_windows`, though NumPy might cut them
        self.real_results = False                                   # whether `numpy.real_results` are taken for real, which is checked
        self.assumes = False                                        # whether numbers of data are taken for what they are (`assumed`),
        self.decides = False                                        # and the sides of all branches, not of those that are refused
        self.any_results = False                                    # whether results may be texts, and have as many elements as data say
        self.known: Any = None                                      # arguments that are compiled in, though they are arrays
        self.live: list[np.ndarray[Any, Any]] = []                  # memory outside whose contents the program reads: it was seen to change
        # what attempts have found
        self.met = False                                            # whether any function was rewritten
        self.unrolled: dict[Site, str] = {}                         # loops to be unrolled, and what makes arrays that are to be traced
        self.foreseen: set[Site] | None = set()                     # those that most probably are; None where that has led to an error
        self.heavy: set[Site] = set()                               # short loops that are recorded all the same: their iterations are long
        self.by_data: set[Site] = set()                             # loops whose index is data, though they are counted
        self.uncounted: set[Site] = set()                           # `while` loops with no count
        self.fitting: dict[Any, Any] = {}                           # what sides of branches give, by their code (`undecided.fitting`)
        self.carrying: dict[Any, Any] = {}                          # what loops carry (`source.carried.remembered`), by what they see
        self.places: dict[Any, tuple[Any, ...]] = {}                # what branches assign to (`effects.places`), by their code
        self.plain: set[Site] = set()                               # loops that computed with known numbers alone,
        self.running: list[Site] = []                               # those that run now, one inside of the other,
        self.iterations = 0                                         # and how many iterations these have had
        self.bounded: dict[Site, Any] = {}                          # what makes containers with room (`source.bounded`), and its plan
        self.unlike: dict[tuple[str, int], BwError | None] = {}     # branches refused as their sides leave unlike things (None: lists),
        self.going_on: set[tuple[str, int]] = set()                 # and those that go on to the end of their blocks since then
        self.guarded: set[Site] = set()                             # loops that have `try`, to be unrolled if the function is refused;
        self.refused: BwError | None = None                         # the refusal before that was done
        self.followed: dict[Any, Any] = {}                          # numbers, by how they are computed from arrays (`refusals.demands`)
        self.told: set[Any] = set()                                 # lines whose messages were left out
        self.restart()

    def restart(self) -> None:
        """At the beginning of each attempt to trace the function."""
        self._restart_bodies()
        self._restart_objects()
        self._restart_choices()
        self._restart_handlers()
        self.needed = False                                         # whether something was captured that Python alone cannot run
        self.may_be_cut = False                                     # whether there are slices that are `data_windows`,
        self.may_be_complex = False                                 # or results that may be taken for real
        self.assumed: list[Assumed] = []                            # numbers of data that are,
        self.evaluated: dict[Value, Any] = {}                       # and what was computed for them
        self.captured: dict[Site, str] = {}                         # in words: loops that were,
        self.notes: dict[Site, str] = {}                            # and what was not captured

    def _restart_bodies(self) -> None:
        """What is being traced: bodies of loops and branches, and calls."""
        self.scopes: list[Any] = []                                 # the bodies (`source.effects.places.Scope`), innermost last,
        self.depth = 0                                              # and how many of captured loops and branches
        self.recorded = 0                                           # values of the bodies that were traced until now
        self.unrolling: list[Any] = []                              # short loops around that are unrolled, innermost last;
        self.copies = 1                                             # how often what is being traced is traced, because of these
        self.ahead = 1                                              # iterations of the loop refused last that are unlike the others
        self.divisible: set[Index] = set()                          # indices of loops around: of which several iterations can be made one,
        self.parted: set[Index] = set()                             # and of those that can be recorded in parts
        self.parts = 0                                              # in parts of how many loops what is being traced is;
        self.as_data = False                                        # whether slices in it are between data, as sizes move with indices
        self.summed: list[Any] | None = None                        # a list of which only the sum is wanted: its length is not to move
        self.calls: dict[int, list[int]] = {}                       # per code of a function, at which depths it is called inside of itself,
        self.inner_calls = 0                                        # and how many such calls there were
        self.counting = 0                                           # `while` loops around that are traced to know how long they are
        self.lifted: dict[Value, Value] = {}                        # numbers from outside of bodies, by the inputs that stand for them
        self.one_kind = False                                       # whether sides of a branch must give one kind of numbers (np.vectorize)
        self.types_asked = False                                    # whether the type of a traced value was, which a loop may change

    def _restart_objects(self) -> None:
        """Arrays, objects and containers; by their ids, where these are keys."""
        self.made: dict[int, tuple[Any, Site]] = {}                 # concrete arrays made by the function, with the places
        self.shown: dict[int, Any] = {}                             # those indexed with traced values: there may be traced views of them
        self.objects: dict[int, Any] = {}                           # objects that the function made
        self.doubles: dict[int, Any] = {}                           # those in the place of others, and these (`source.effects.doubles`);
        self.taken: set[int] = set()                                # ids of those that were taken out of lists that data fill;
        self.undone: dict[int, Site] = {}                           # loops that are unrolled where one of them is changed;
        self.handed: dict[int, tuple[Any, list[Any], Site]] = {}    # of those that a list hands out: what it holds, and the loop;
        self.table_rows: dict[int, tuple[Any, Any]] = {}            # lists that lists of lists hand out, and these;
        self.handing: dict[type, dict[Site, None]] = {}             # such loops, by the class of what they are handed
        self.containers: dict[int, tuple[Any, Site, int]] = {}      # where containers are made, and of what size;
        self.given: dict[Site, set[Value]] = {}                     # flags of what those with room have given, by where they are made
        self.wishes: dict[Site, Any] = {}                           # those that are to have room, if all else is refused
        self.remembered: dict[Any, Any] = {}                        # what functions with a cache gave (`source.library.wrappers`),
        self.remembering: list[Any] = []                            # and those that are being called
        self.events: list[Any] = []                                 # accesses by keys that move (`array_backed`), additions (`bounded`)

    def _restart_choices(self) -> None:
        """What data decide about."""
        self.choices = False                                        # whether they do, of which kind a variable is (`kinds.choices`),
        self.gaps = False                                           # and which elements a list has (`lists.gaps`)
        self.twins_written = 0                                      # writes to arrays that may be those that were written to
        self.unbound: dict[str, str] = {}                           # variables that Python would have bound or not, and what to do
        self.sure: dict[int, tuple[Any, Any]] = {}                  # those checked to have a value, by their ids, and in which region
        self.truths: dict[Value, bool | None] = {}                  # truth values that are Python's (`tracing.truths`), or may be
        self.truths_asked = False                                   # whether it was asked of some whose they are
        self.asked: list[tuple[Any, Value, int]] = []               # those that may be None, with tests that say it (`kinds.unbound`)

    def _restart_handlers(self) -> None:
        """`try` and `raise`."""
        self.tries: list[Any] = []                                  # with handlers (`source.effects.checks.Trying`), innermost last;
        self.attempts: list[Any] = []                               # those that can be branches (`source.bodies.tries`), likewise
        self.raised: BaseException | None = None                    # the last exception that a `raise` of the user's raised in a body
        self.formatted: list[tuple[Any, str]] | None = None         # traced values, and formats, in the text of one that is being made
        self.divisions: set[Value] = set()                          # in a `try`, of NumPy's numbers, so that they raise nothing

    def mark(self) -> tuple[dict[int, Any], int]:
        """What is noted until now; `forget` goes back to it."""
        return self.doubles.copy(), len(self.events)

    def forget(self, mark: tuple[dict[int, Any], int]) -> None:
        """Forget what an attempt that is given up has noted."""
        self.doubles = mark[0].copy()
        del self.events[mark[1]:]

    def own(self, made: Any) -> None:
        """Note that something was made in the body that is being traced: it may change there."""
        if self.scopes:
            self.scopes[-1].own[id(made)] = made

    def own_object(self, made: Any) -> None:
        """Note an object that the function has made."""
        self.own(made)
        self.objects[id(made)] = made

    def has_made(self, array: Any) -> bool:
        """Whether the function itself made a concrete array, anew in each call."""
        found = self.made.get(id(array))
        return found is not None and found[0] is array
