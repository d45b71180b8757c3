"""The thread pool for loops of programs: `bw_parallel`, in LLVM text, one pool per process.

    i32 bw_parallel(ptr fn, ptr context, i64 count, i64 grain)          calls        i32 fn(ptr context, i64 begin, i64 end)

until [0, count) is covered, and returns 0, or the status of the first part (the one with the lowest `begin`) that returned another.

- Parts: their boundaries are multiples of `grain` (except the last end) and depend only on `count`, `grain` and the number of threads,
  not on the thread that runs them: sums per part have the same bits every time.  At most PARTS_PER_THREAD per thread.  With one thread, or
  `count` up to `grain`, there is one part.  `grain` should be at least 10 us of work: a region costs little if the threads are awake, and
  a system call for each sleeping thread; they sleep from SPIN_NANOSECONDS after the last region on.
- Scheduling: each thread has a range of parts (the caller's is the first), so that it gets the same memory in each region; a thread that
  has finished its range steals from the others.  A thread without CPU takes no parts, and the caller waits only for parts that were begun.
- Errors: parts after a failed one are not begun.  Error records must be kept per part, or for the lowest `begin`.
- A region inside a region, or while another Python thread uses the pool, runs in the calling thread, part by part.
- Oversubscribed machine: if regions take longer than one thread would (estimated from the parts that the caller ran), the pool pauses for
  REST_PER_LOSS times the lost time, and then tries again; so the loss is a few percent.
- Threads never touch Python: `fn` must not call back.  They block all signals; `bw_poll` returns at once in them, and runs the handlers in
  the caller's parts.  They avoid the caller's CPU (a woken thread is often placed there, and stays), within the CPUs that the caller may
  use at that time; the caller itself is never moved.
- A forked child has no threads; they are started by its first region.  They never end, and their code is never unloaded.

On systems other than Linux, a region runs in the calling thread, with the same parts.
"""

from __future__ import annotations

import ctypes

from bwcompiler.locks import in_forked_child, once
from bwcompiler.runtime import jit, object_cache
from bwcompiler.runtime.pool.thread_state import (
    DECLARATIONS,
    MOST_THREADS,
    NOW,
    OPEN,
    STATE,
    STATE_TEXT,
    STATE_WORDS,
    WAITING,
    at,
    for_this_machine,
    get,
    has_threads,
    put,
)
from bwcompiler.runtime.pool.thread_workers import PLACE, WORKER
from bwcompiler.target import default_target

PARTS_PER_THREAD = 4
SPIN_TURNS = 1000                  # 45 us: how long the caller looks for others to end before it sleeps; who spins loses its turn later
LEAST_REST, MOST_REST = 5_000_000, 1_000_000_000     # ns
REST_PER_LOSS = 50
LEAST_LOSS = 20_000                # ns that regions may lose in total without a pause: small regions often lose a little on an idle machine


# The number of parts, and their length.
_PARTS = f"""
define internal i64 @part_length(i64 %threads, i64 %count, i64 %least) nounwind {{
  %most = mul i64 %threads, {PARTS_PER_THREAD}
  %most.less = sub i64 %most, 1
  %sum = add i64 %count, %most.less
  %even = udiv i64 %sum, %most
  %wanted = call i64 @llvm.umax.i64(i64 %even, i64 %least)
  %least.less = sub i64 %least, 1
  %up = add i64 %wanted, %least.less
  %grains = udiv i64 %up, %least
  %length = mul i64 %grains, %least
  ret i64 %length
}}
"""

_SERIAL = """
define internal i32 @serial(ptr %fn, ptr %context, i64 %count, i64 %part) nounwind {
start:
  br label %head
head:
  %begin = phi i64 [ 0, %start ], [ %end, %body ]
  %more = icmp ult i64 %begin, %count
  br i1 %more, label %body, label %good
body:
  %next = add i64 %begin, %part
  %end = call i64 @llvm.umin.i64(i64 %next, i64 %count)
  %status = call i32 %fn(ptr %context, i64 %begin, i64 %end)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %head, label %bad
good:
  ret i32 0
bad:
  ret i32 %status
}
"""

_ENTRY = f"""
define i32 @bw_parallel(ptr %fn, ptr %context, i64 %count, i64 %grain) nounwind {{
start:
  %threads = load atomic i64, ptr {at("threads")} monotonic, align 8
  %least = call i64 @llvm.smax.i64(i64 %grain, i64 1)
  %nothing = icmp slt i64 %count, 1
  br i1 %nothing, label %done, label %alone.or.not
alone.or.not:
  %one.thread = icmp slt i64 %threads, 2
  %one.part = icmp ule i64 %count, %least
  %alone = or i1 %one.thread, %one.part
  br i1 %alone, label %single, label %parts
single:
  %single.status = call i32 %fn(ptr %context, i64 0, i64 %count)
  ret i32 %single.status
parts:
  %part = call i64 @part_length(i64 %threads, i64 %count, i64 %least)
  %status = call i32 @region(ptr %fn, ptr %context, i64 %count, i64 %part, i64 %threads)
  ret i32 %status
done:
  ret i32 0
}}
"""

_ONLY_SERIAL = """
define internal i32 @region(ptr %fn, ptr %context, i64 %count, i64 %part, i64 %threads) nounwind {
  %status = call i32 @serial(ptr %fn, ptr %context, i64 %count, i64 %part)
  ret i32 %status
}
"""

_REGION = f"""
define internal i32 @region(ptr %fn, ptr %context, i64 %count, i64 %part, i64 %threads) nounwind {{
start:
  %part.less = sub i64 %part, 1
  %up = add i64 %count, %part.less
  %parts = udiv i64 %up, %part
  %is.one = icmp ult i64 %parts, 2
  br i1 %is.one, label %serial, label %claim
claim:
  %pair = cmpxchg ptr {at("busy")}, i64 0, i64 1 acquire monotonic
  %claimed = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %claimed, label %rest, label %serial
rest:
  %began = call i64 @now()
{get("rest_until")}
  %resting = icmp slt i64 %began, %rest_until
  br i1 %resting, label %count.rest, label %hire
count.rest:
{get("rested")}
  %rested.more = add i64 %rested, 1
{put("rested", "%rested.more")}
  br label %leave
hire:
  %workers = call i64 @start_workers(i64 %threads)
  %has.workers = icmp sgt i64 %workers, 0
  br i1 %has.workers, label %place, label %leave
place:
  %room = call i64 @place(i64 %began, i64 %workers)
  %has.room = icmp ne i64 %room, 0
  br i1 %has.room, label %share, label %leave
leave:
  store atomic i64 0, ptr {at("busy")} release, align 8
  br label %serial
serial:
  %serial.status = call i32 @serial(ptr %fn, ptr %context, i64 %count, i64 %part)
  ret i32 %serial.status

share:
  %most = add i64 %workers, 1
  %team = call i64 @llvm.umin.i64(i64 %most, i64 %parts)
  br label %ranges
ranges:
  %t = phi i64 [ 0, %share ], [ %t.next, %ranges ]
  %t.next = add i64 %t, 1
  %first.product = mul i64 %t, %parts
  %first = udiv i64 %first.product, %team
  %last.product = mul i64 %t.next, %parts
  %last = udiv i64 %last.product, %team
  %range = getelementptr [16 x i64], ptr @ranges, i64 %t
  store i64 %first, ptr %range
  %range.end = getelementptr i64, ptr %range, i64 1
  store i64 %last, ptr %range.end
  %all = icmp eq i64 %t.next, %team
  br i1 %all, label %open, label %ranges
open:
  %fn.word = ptrtoint ptr %fn to i64
  %context.word = ptrtoint ptr %context to i64
{put("fn", "%fn.word")}
{put("context", "%context.word")}
{put("count", "%count")}
{put("part", "%part")}
{put("team", "%team")}
  store atomic i64 -1, ptr {at("failed")} monotonic, align 8
{get("regions")}
  %regions.more = add i64 %regions, 1
{put("regions", "%regions.more")}
  %gate.closed = load atomic i64, ptr {at("gate")} monotonic, align 8
  %gate.number = and i64 %gate.closed, {-(1 << 32)}
  %gate.next = add i64 %gate.number, {(1 << 32) + OPEN}
  store atomic i64 %gate.next, ptr {at("gate")} seq_cst, align 8
  %ticket = atomicrmw add ptr {at("ticket")}, i32 1 seq_cst
  %sleepers = load atomic i64, ptr {at("sleepers")} seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %run
wake:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {at("ticket")}, i32 129, i32 {MOST_THREADS}, ptr null, ptr null, i32 0)
  br label %run
run:
  %opened = call i64 @now()
  %cpu.opened = call i64 @cpu_time()
  %mine = call i64 @work(i64 0)
  %cpu.ran = call i64 @cpu_time()
  %ran = call i64 @now()
  %gate.last = atomicrmw and ptr {at("gate")}, i64 {~OPEN} acq_rel
  br label %wait
wait:
  %turn = phi i64 [ 0, %run ], [ %turn.next, %pause ], [ %turn.next, %doze ]
  %gate = load atomic i64, ptr {at("gate")} acquire, align 8
  %inside = and i64 %gate, {OPEN - 1}
  %gone = icmp eq i64 %inside, 0
  %turn.next = add i64 %turn, 1
  br i1 %gone, label %over, label %wait.how
wait.how:
  %long = icmp ugt i64 %turn, {SPIN_TURNS}
  br i1 %long, label %sleep, label %pause
pause:
  PAUSE
  br label %wait
sleep:
  %gate.marked = atomicrmw or ptr {at("gate")}, i64 {WAITING} acq_rel
  %still.inside = and i64 %gate.marked, {OPEN - 1}
  %has.left = icmp eq i64 %still.inside, 0
  br i1 %has.left, label %over, label %doze
doze:
  %gate.asleep = or i64 %gate.marked, {WAITING}
  %gate.low = trunc i64 %gate.asleep to i32
  %slept = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {at("gate")}, i32 128, i32 %gate.low, ptr null, ptr null, i32 0)
  br label %wait
over:
  %ended = call i64 @now()
  %failed = load atomic i64, ptr {at("failed")} monotonic, align 8
  %elapsed = sub i64 %ended, %began
  %own = sub i64 %ran, %opened
  %cpu = sub i64 %cpu.ran, %cpu.opened
  call void @judge(i64 %elapsed, i64 %own, i64 %cpu, i64 %mine, i64 %parts)
  store atomic i64 0, ptr {at("busy")} release, align 8
  %good = icmp eq i64 %failed, -1
  %status.word = select i1 %good, i64 0, i64 %failed
  %status = trunc i64 %status.word to i32
  ret i32 %status
}}
"""

# Run parts as thread %index of the team: those of its own range, then those of the others.  Returns their number.
_WORK = f"""
define internal i64 @work(i64 %index) nounwind {{
start:
{get("fn", "fn.word")}
  %fn = inttoptr i64 %fn.word to ptr
{get("context", "context.word")}
  %context = inttoptr i64 %context.word to ptr
{get("count")}
{get("part")}
{get("team")}
  br label %range.head
range.head:
  %v = phi i64 [ 0, %start ], [ %v.next, %range.done ]
  %done.before = phi i64 [ 0, %start ], [ %done, %range.done ]
  %end = icmp eq i64 %v, %team
  br i1 %end, label %finish, label %range.body
range.body:
  %v.next = add i64 %v, 1
  %shifted = add i64 %index, %v
  %which = urem i64 %shifted, %team
  %range = getelementptr [16 x i64], ptr @ranges, i64 %which
  %range.end.at = getelementptr i64, ptr %range, i64 1
  %range.end = load i64, ptr %range.end.at
  br label %take
take:
  %done = phi i64 [ %done.before, %range.body ], [ %done.next, %ran ], [ %done, %look ]
  %number = atomicrmw add ptr %range, i64 1 monotonic
  %mine = icmp slt i64 %number, %range.end
  br i1 %mine, label %look, label %range.done
look:
  %failed = load atomic i64, ptr {at("failed")} monotonic, align 8
  %failed.part = lshr i64 %failed, 32
  %behind = icmp ugt i64 %number, %failed.part
  br i1 %behind, label %take, label %run
run:
  %begin = mul i64 %number, %part
  %next = add i64 %begin, %part
  %stop = call i64 @llvm.umin.i64(i64 %next, i64 %count)
  %status = call i32 %fn(ptr %context, i64 %begin, i64 %stop)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %fail, label %ran
fail:
  %high = shl i64 %number, 32
  %low = zext i32 %status to i64
  %failure = or i64 %high, %low
  %before = atomicrmw umin ptr {at("failed")}, i64 %failure monotonic
  br label %ran
ran:
  %done.next = add i64 %done, 1
  br label %take
range.done:
  br label %range.head
finish:
  ret i64 %done.before
}}
"""

# The time that the region saved, in ns.  One thread would have needed (parts / mine) times the CPU time of the caller's own parts, times
# the caller's ratio of time to CPU time; this ratio is of running sums, from which each region subtracts a 32nd.  (A single region is no
# measure: a thread that lost the CPU in one part of eight would not have lost it eight times.)  The score is a running sum of savings, and
# the pool pauses when it falls below 0.
_JUDGE = f"""
define internal void @judge(i64 %elapsed, i64 %own, i64 %cpu, i64 %mine, i64 %parts) nounwind {{
start:
{get("time", "time.before")}
{get("cpu_time", "cpu.before")}
  %time.32nd = sdiv i64 %time.before, 32
  %cpu.32nd = sdiv i64 %cpu.before, 32
  %time.kept = sub i64 %time.before, %time.32nd
  %cpu.kept = sub i64 %cpu.before, %cpu.32nd
  %time.now = add i64 %time.kept, %own
  %cpu.now = add i64 %cpu.kept, %cpu
{put("time", "%time.now")}
{put("cpu_time", "%cpu.now")}
  %none = icmp eq i64 %mine, 0
  %unknown = icmp slt i64 %cpu.now, 1
  %nothing = or i1 %none, %unknown
  br i1 %nothing, label %done, label %estimate
estimate:
  %time.real = sitofp i64 %time.now to double
  %cpu.real = sitofp i64 %cpu.now to double
  %wait.measured = fdiv double %time.real, %cpu.real
  %waits = fcmp ogt double %wait.measured, 1.0
  %wait = select i1 %waits, double %wait.measured, double 1.0
  %own.real = sitofp i64 %cpu to double
  %parts.real = sitofp i64 %parts to double
  %mine.real = sitofp i64 %mine to double
  %all = fmul double %own.real, %parts.real
  %undisturbed = fdiv double %all, %mine.real
  %alone.real = fmul double %undisturbed, %wait
  %alone = fptosi double %alone.real to i64
  %gain = sub i64 %alone, %elapsed
{get("score")}
  %forgotten = sdiv i64 %score, 32
  %decayed = sub i64 %score, %forgotten
  %score.next = add i64 %decayed, %gain
{get("rest", "rest.before")}
  %quarter = sdiv i64 %elapsed, -4
  %much = sub i64 %quarter, {LEAST_LOSS}
  %loses = icmp slt i64 %score.next, %much
  br i1 %loses, label %rest, label %go.on
go.on:
{put("score", "%score.next")}
  %gains = icmp sgt i64 %gain, 0
  %forgiven = sdiv i64 %rest.before, 32
  %less = sub i64 %rest.before, %forgiven
  %rest.after = select i1 %gains, i64 %less, i64 %rest.before
{put("rest", "%rest.after")}
  ret void
rest:
  %fair = mul i64 %score.next, -{REST_PER_LOSS}
  %doubled = shl i64 %rest.before, 1
  %least = call i64 @llvm.smax.i64(i64 %fair, i64 {LEAST_REST})
  %longer = call i64 @llvm.smax.i64(i64 %least, i64 %doubled)
  %rest.next = call i64 @llvm.smin.i64(i64 %longer, i64 {MOST_REST})
  %ended = call i64 @now()
  %until = add i64 %ended, %rest.next
{put("rest", "%rest.next")}
{put("rest_until", "%until")}
{put("score", "0")}
  ret void
done:
  ret void
}}
"""


def _text() -> str:
    common = STATE_TEXT + _PARTS + _SERIAL + _ENTRY
    if not has_threads():
        return common + _ONLY_SERIAL
    return common + DECLARATIONS + for_this_machine(_REGION + _WORK + WORKER + PLACE + _JUDGE + NOW)


class ThreadPool:
    """The pool of this process: the address of `bw_parallel`, and its state."""

    def __init__(self) -> None:
        code = jit.load_for_ever(object_cache.object_for(_text(), default_target(), jit.PLAIN), {}, ("bw_parallel", "bw_threads_state"))
        self.address = code.addresses["bw_parallel"]
        find = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.addresses["bw_threads_state"])
        self._state = (ctypes.c_int64 * STATE_WORDS).from_address(find())

    def word(self, name: str) -> int:
        """A word of the state."""
        return self._state[STATE[name]]

    def set_threads(self, count: int) -> None:
        """Use `count` threads, including the calling one, from the next region on; surplus threads stay asleep."""
        self._state[STATE["threads"]] = min(count, MOST_THREADS)

    def wake_up(self) -> None:
        """End a pause."""
        for name in ("rest_until", "rest", "score", "time", "cpu_time"):
            self._state[STATE[name]] = 0

    def rest_until(self, time: int) -> None:
        """Run regions in their callers until that time (CLOCK_MONOTONIC, ns)."""
        self._state[STATE["rest_until"]] = time

    def forget_threads(self) -> None:
        """In a forked child, which has none."""
        count = self.word("threads")
        ctypes.memset(ctypes.addressof(self._state), 0, ctypes.sizeof(self._state))
        self.set_threads(count)


@once
def pool() -> ThreadPool:
    """The pool of this process, which has one thread until `set_threads`."""
    made = ThreadPool()
    made.set_threads(1)
    in_forked_child(made.forget_threads)
    return made
