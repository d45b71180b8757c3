"""The threads that share the loops of programs: `bw_parallel`, in LLVM text, one pool per process.

    i32 bw_parallel(ptr fn, ptr context, i64 count, i64 grain)          calls        i32 fn(ptr context, i64 begin, i64 end)

until [0, count) is covered, and returns 0, or the status of the first part (the one with the lowest `begin`) that returned another.

- Parts: their boundaries are multiples of `grain` (except the last end) and depend on `count`, `grain` and the number of threads alone,
  not on who runs them: what adds per part gives the same bits every time.  At most PARTS_PER_THREAD per thread.  With one thread, or
  `count` up to `grain`, there is one part.  `grain` is also what makes a region worth it: 10 us of work; a region costs 0.6 us where
  the threads are awake, 30 to 80 us where they sleep, which they do SPIN_NANOSECONDS after the last region.
- Who: parts lie in one range per thread (the caller's is the first), so that a thread gets the same memory region after region; who is
  done with its range takes from the others.  A thread that gets no CPU takes none, and the caller waits only for parts that were begun.
- Errors: parts behind a failed one are not begun.  A record of what failed must be kept per part, or by the lowest `begin`.
- A region inside of a region, and one while another Python thread has the pool, runs in its own thread, part by part.
- A crowded machine: where regions take longer than one thread would (estimated from the parts the caller ran), the pool rests for twenty
  times what was lost, at least, and up to a second; so it costs a few percent.
- Threads never touch Python: `fn` must not call back.  They block all signals; `bw_poll` in them returns at once, and in the caller's parts
  runs the handlers as ever.  They keep off the caller's CPU (a woken thread is often put there, and stays), within the CPUs that the
  caller may use at that time; the caller itself is never moved.
- A forked child has none; they start again with its first region.  They never end, and neither does their code.

Elsewhere than on Linux a region is run in the calling thread, with the same parts.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time

from bwcompiler.locks import in_forked_child, once
from bwcompiler.runtime import jit, object_cache
from bwcompiler.target import default_target

PARTS_PER_THREAD = 4
MOST_THREADS = 256
SPIN_NANOSECONDS = 200_000
PLACE_NANOSECONDS = 100_000_000    # how often the CPUs that the caller may use are looked up, if it stays on one
MOST_REST = 1_000_000_000
_CPU_BYTES = 128                   # of glibc's cpu_set_t: 1024 CPUs
_FUTEX = {"x86_64": 202, "aarch64": 98}
_PAUSE = {"x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
          "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")}
_OPEN = 1 << 16                    # bit of the gate: a region is on.  Below: how many threads are inside; above bit 32: its number

# Words of @state.  Those that threads wait for or change have cache lines of their own.
_LINES = (("threads", "started", "cpu", "place_at", "has_room", "rest_until", "rest", "score", "regions", "rested"),
          ("busy",), ("ticket",), ("sleepers",), ("gate",), ("failed",), ("fn", "context", "count", "part", "team"))
STATE = {name: 16 * line + k for line, names in enumerate(_LINES) for k, name in enumerate(names)}
_STATE_WORDS = 16 * len(_LINES)


def _at(name: str) -> str:
    """The address of a word of the state, as a constant expression."""
    return f"getelementptr (i64, ptr @state, i64 {STATE[name]})"


def _put(name: str, value: str) -> str:
    return f"  store i64 {value}, ptr {_at(name)}"


def _get(name: str, register: str | None = None) -> str:
    return f"  %{register or name} = load i64, ptr {_at(name)}"


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
  %threads = load atomic i64, ptr {_at("threads")} monotonic, align 8
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
  %pair = cmpxchg ptr {_at("busy")}, i64 0, i64 1 acquire monotonic
  %claimed = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %claimed, label %rest, label %serial
rest:
  %began = call i64 @now()
{_get("rest_until")}
  %resting = icmp slt i64 %began, %rest_until
  br i1 %resting, label %count.rest, label %hire
count.rest:
{_get("rested")}
  %rested.more = add i64 %rested, 1
{_put("rested", "%rested.more")}
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
  store atomic i64 0, ptr {_at("busy")} release, align 8
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
{_put("fn", "%fn.word")}
{_put("context", "%context.word")}
{_put("count", "%count")}
{_put("part", "%part")}
{_put("team", "%team")}
  store atomic i64 -1, ptr {_at("failed")} monotonic, align 8
{_get("regions")}
  %regions.more = add i64 %regions, 1
{_put("regions", "%regions.more")}
  %gate.closed = load atomic i64, ptr {_at("gate")} monotonic, align 8
  %gate.next = add i64 %gate.closed, {(1 << 32) + _OPEN}
  store atomic i64 %gate.next, ptr {_at("gate")} seq_cst, align 8
  %ticket = atomicrmw add ptr {_at("ticket")}, i32 1 seq_cst
  %sleepers = load atomic i64, ptr {_at("sleepers")} seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %run
wake:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {_at("ticket")}, i32 129, i32 {MOST_THREADS}, ptr null, ptr null, i32 0)
  br label %run
run:
  %opened = call i64 @now()
  %mine = call i64 @work(i64 0)
  %ran = call i64 @now()
  %gate.last = atomicrmw and ptr {_at("gate")}, i64 {~_OPEN} acq_rel
  br label %wait
wait:
  %turn = phi i64 [ 0, %run ], [ %turn.next, %pause ], [ %turn.next, %yield ]
  %gate = load atomic i64, ptr {_at("gate")} acquire, align 8
  %inside = and i64 %gate, {_OPEN - 1}
  %gone = icmp eq i64 %inside, 0
  %turn.next = add i64 %turn, 1
  br i1 %gone, label %over, label %wait.how
wait.how:
  %long = icmp ugt i64 %turn, 5000
  br i1 %long, label %yield, label %pause
pause:
  PAUSE
  br label %wait
yield:
  %yielded = call i32 @sched_yield()
  br label %wait
over:
  %ended = call i64 @now()
  %failed = load atomic i64, ptr {_at("failed")} monotonic, align 8
  call void @judge(i64 %began, i64 %opened, i64 %ran, i64 %ended, i64 %mine, i64 %parts)
  store atomic i64 0, ptr {_at("busy")} release, align 8
  %good = icmp eq i64 %failed, -1
  %status.word = select i1 %good, i64 0, i64 %failed
  %status = trunc i64 %status.word to i32
  ret i32 %status
}}
"""

# Run parts as thread %index of the team: those of its own range, then those of the others.  How many it ran.
_WORK = f"""
define internal i64 @work(i64 %index) nounwind {{
start:
{_get("fn", "fn.word")}
  %fn = inttoptr i64 %fn.word to ptr
{_get("context", "context.word")}
  %context = inttoptr i64 %context.word to ptr
{_get("count")}
{_get("part")}
{_get("team")}
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
  %failed = load atomic i64, ptr {_at("failed")} monotonic, align 8
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
  %before = atomicrmw umin ptr {_at("failed")}, i64 %failure monotonic
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

_WORKER = f"""
define internal ptr @worker(ptr %argument) nounwind {{
start:
  %index = ptrtoint ptr %argument to i64
  br label %spin
spin:
  %last = phi i64 [ 0, %start ], [ %last, %again ], [ %number, %left ], [ %last, %lost ], [ %last, %woken ]
  %deadline = phi i64 [ 0, %start ], [ %deadline, %again ], [ %deadline.next, %left ], [ %deadline, %lost ], [ %deadline, %woken ]
  %turn = phi i64 [ 0, %start ], [ %turn.next, %again ], [ 0, %left ], [ %turn, %lost ], [ 0, %woken ]
  %gate = load atomic i64, ptr {_at("gate")} acquire, align 8
  %number = lshr i64 %gate, 32
  %open.bit = and i64 %gate, {_OPEN}
  %open = icmp ne i64 %open.bit, 0
  %new = icmp ne i64 %number, %last
  %wanted = and i1 %open, %new
  br i1 %wanted, label %enter, label %idle
enter:
  %entered = add i64 %gate, 1
  %pair = cmpxchg ptr {_at("gate")}, i64 %gate, i64 %entered acq_rel monotonic
  %inside = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %inside, label %member, label %lost
lost:
  br label %spin
member:
{_get("team")}
  %is.member = icmp ult i64 %index, %team
  br i1 %is.member, label %work, label %leave
work:
  %done = call i64 @work(i64 %index)
  br label %leave
leave:
  %gate.before = atomicrmw sub ptr {_at("gate")}, i64 1 acq_rel
  %now.left = call i64 @now()
  br label %left
left:
  %deadline.next = add i64 %now.left, {SPIN_NANOSECONDS}
  br label %spin
idle:
  PAUSE
  %turn.next = add i64 %turn, 1
  %look.bits = and i64 %turn.next, 63
  %look = icmp eq i64 %look.bits, 0
  br i1 %look, label %clock, label %again
clock:
  %now = call i64 @now()
  %tired = icmp sgt i64 %now, %deadline
  br i1 %tired, label %sleep, label %again
again:
  br label %spin
sleep:
  %seen = load atomic i32, ptr {_at("ticket")} seq_cst, align 8
  %sleepers = atomicrmw add ptr {_at("sleepers")}, i64 1 seq_cst
  %gate.now = load atomic i64, ptr {_at("gate")} seq_cst, align 8
  %number.now = lshr i64 %gate.now, 32
  %came = icmp ne i64 %number.now, %last
  %open.now = and i64 %gate.now, {_OPEN}
  %is.open = icmp ne i64 %open.now, 0
  %stay = and i1 %came, %is.open
  br i1 %stay, label %awake, label %wait
wait:
  %waited = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {_at("ticket")}, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  br label %awake
awake:
  %sleepers.before = atomicrmw sub ptr {_at("sleepers")}, i64 1 seq_cst
  br label %woken
woken:
  br label %spin
}}

define internal i64 @start_workers(i64 %threads) nounwind {{
start:
  %capped = call i64 @llvm.umin.i64(i64 %threads, i64 {MOST_THREADS})
  %wanted = sub i64 %capped, 1
{_get("started")}
  %enough = icmp uge i64 %started, %wanted
  br i1 %enough, label %done, label %begin
begin:
  %signals = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %attributes = alloca [128 x i8], align 16
  %filled = call i32 @sigfillset(ptr %signals)
  %blocked = call i32 @pthread_sigmask(i32 2, ptr %signals, ptr %before)
  %initialised = call i32 @pthread_attr_init(ptr %attributes)
  %detached = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
{_put("place_at", "0")}
  br label %head
head:
  %k = phi i64 [ %started, %begin ], [ %k.next, %made ]
  %all = icmp eq i64 %k, %wanted
  br i1 %all, label %restore, label %make
make:
  %k.next = add i64 %k, 1
  %argument = inttoptr i64 %k.next to ptr
  %handle = getelementptr i64, ptr @handles, i64 %k
  %failed = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @worker, ptr %argument)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %made, label %restore
made:
  br label %head
restore:
{_put("started", "%k")}
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %unblocked = call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  ret i64 %k
done:
  ret i64 %wanted
}}
"""

# Keep the workers off the caller's CPU, among those that the caller may use.  0: there is no other.
_PLACE = f"""
define internal i64 @place(i64 %now, i64 %workers) nounwind {{
start:
  %cpu.short = call i32 @sched_getcpu()
  %cpu = sext i32 %cpu.short to i64
{_get("cpu", "cpu.before")}
{_get("place_at")}
  %same = icmp eq i64 %cpu, %cpu.before
  %early = icmp slt i64 %now, %place_at
  %keep = and i1 %same, %early
  br i1 %keep, label %kept, label %look
kept:
{_get("has_room")}
  ret i64 %has_room
look:
  %next = add i64 %now, {PLACE_NANOSECONDS}
{_put("place_at", "%next")}
{_put("cpu", "%cpu")}
{_put("has_room", "1")}
  %mask = alloca [{_CPU_BYTES} x i8], align 16
  %failed = call i32 @sched_getaffinity(i32 0, i64 {_CPU_BYTES}, ptr %mask)
  %bad = icmp ne i32 %failed, 0
  %known = icmp ult i64 %cpu, {8 * _CPU_BYTES}
  %no.mask = xor i1 %known, true
  %unknown = or i1 %bad, %no.mask
  br i1 %unknown, label %done, label %clear
clear:
  %byte = lshr i64 %cpu, 3
  %bit.number = and i64 %cpu, 7
  %bit.short = trunc i64 %bit.number to i8
  %bit = shl i8 1, %bit.short
  %others = xor i8 %bit, -1
  %byte.at = getelementptr i8, ptr %mask, i64 %byte
  %old = load i8, ptr %byte.at
  %cleared = and i8 %old, %others
  store i8 %cleared, ptr %byte.at
  %all = load <{_CPU_BYTES} x i8>, ptr %mask, align 16
  %any = call i8 @llvm.vector.reduce.or.v{_CPU_BYTES}i8(<{_CPU_BYTES} x i8> %all)
  %none = icmp eq i8 %any, 0
  br i1 %none, label %no.room, label %move
no.room:
{_put("has_room", "0")}
  ret i64 0
move:
  %k = phi i64 [ 0, %clear ], [ %k.next, %move ]
  %k.next = add i64 %k, 1
  %handle.at = getelementptr i64, ptr @handles, i64 %k
  %handle = load i64, ptr %handle.at
  %ignored = call i32 @pthread_setaffinity_np(i64 %handle, i64 {_CPU_BYTES}, ptr %mask)
  %moved = icmp eq i64 %k.next, %workers
  br i1 %moved, label %done, label %move
done:
  ret i64 1
}}
"""

# Did the region gain?  One thread would have taken (parts / mine) times what the caller needed for its own.  The score is a decaying sum
# of gains in 256ths of the time; below -64 the pool rests.
_JUDGE = f"""
define internal void @judge(i64 %began, i64 %opened, i64 %ran, i64 %ended, i64 %mine, i64 %parts) nounwind {{
start:
  %all.elapsed = sub i64 %ended, %began
  %elapsed = call i64 @llvm.smax.i64(i64 %all.elapsed, i64 1)
  %none = icmp eq i64 %mine, 0
  br i1 %none, label %done, label %estimate
estimate:
  %own = sub i64 %ran, %opened
  %product = mul i64 %own, %parts
  %alone = udiv i64 %product, %mine
  %gain = sub i64 %alone, %elapsed
  %scaled = mul i64 %gain, 256
  %relative = sdiv i64 %scaled, %elapsed
  %capped = call i64 @llvm.smin.i64(i64 %relative, i64 256)
{_get("score")}
  %eighth = sdiv i64 %score, 8
  %decayed = sub i64 %score, %eighth
  %score.next = add i64 %decayed, %capped
{_get("rest", "rest.before")}
  %loses = icmp slt i64 %score.next, -64
  br i1 %loses, label %rest, label %go.on
go.on:
{_put("score", "%score.next")}
  %gains = icmp sgt i64 %capped, 0
  %half = lshr i64 %rest.before, 1
  %rest.after = select i1 %gains, i64 %half, i64 %rest.before
{_put("rest", "%rest.after")}
  ret void
rest:
  %loss = sub i64 %elapsed, %alone
  %fair = mul i64 %loss, 20
  %doubled = shl i64 %rest.before, 1
  %least = call i64 @llvm.smax.i64(i64 %fair, i64 1000000)
  %longer = call i64 @llvm.smax.i64(i64 %least, i64 %doubled)
  %rest.next = call i64 @llvm.smin.i64(i64 %longer, i64 {MOST_REST})
  %until = add i64 %ended, %rest.next
{_put("rest", "%rest.next")}
{_put("rest_until", "%until")}
{_put("score", "0")}
  ret void
done:
  ret void
}}
define internal i64 @now() nounwind {{
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}
"""

_STATE = f"""
@state = internal global [{_STATE_WORDS} x i64] zeroinitializer, align 128
define ptr @bw_threads_state() nounwind {{
  ret ptr @state
}}
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""

_DECLARATIONS = f"""
@ranges = internal global [{MOST_THREADS} x [16 x i64]] zeroinitializer, align 128
@handles = internal global [{MOST_THREADS} x i64] zeroinitializer
declare i64 @llvm.smin.i64(i64, i64)
declare i8 @llvm.vector.reduce.or.v{_CPU_BYTES}i8(<{_CPU_BYTES} x i8>)
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @clock_gettime(i32, ptr)
"""


def has_threads() -> bool:
    """Whether regions run in several threads on this system."""
    return sys.platform == "linux" and platform.machine() in _FUTEX


def _text() -> str:
    common = _STATE + _PARTS + _SERIAL + _ENTRY
    if not has_threads():
        return common + _ONLY_SERIAL
    declare, pause = _PAUSE[platform.machine()]
    own = _REGION + _WORK + _WORKER + _PLACE + _JUDGE
    number = str(_FUTEX[platform.machine()])
    return f"{common}{_DECLARATIONS}{declare}\n{own.replace('PAUSE', pause).replace('i64 FUTEX', f'i64 {number}')}"


class ThreadPool:
    """The pool of this process: the address of `bw_parallel`, and its state."""

    def __init__(self) -> None:
        code = jit.load_for_ever(object_cache.object_for(_text(), default_target()), {}, ("bw_parallel", "bw_threads_state"))
        self.address = code.addresses["bw_parallel"]
        find = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.addresses["bw_threads_state"])
        self._state = (ctypes.c_int64 * _STATE_WORDS).from_address(find())

    def word(self, name: str) -> int:
        """A word of the state."""
        return self._state[STATE[name]]

    def set_threads(self, count: int) -> None:
        """Use so many threads, the calling one among them, from the next region on; fewer leave the others asleep."""
        self._state[STATE["threads"]] = min(count, MOST_THREADS)

    def wake_up(self) -> None:
        """Forget that the machine was crowded."""
        for name in ("rest_until", "rest", "score"):
            self._state[STATE[name]] = 0

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
