"""The threads of the pool (`thread_pool.py`), in LLVM text: waiting, entering a region, starting, and avoiding the caller's CPU."""

from __future__ import annotations

from bwcompiler.runtime.pool.thread_state import CPU_BYTES, MOST_THREADS, OPEN, WAITING, at, get, put

SPIN_NANOSECONDS = 200_000
STACK_BYTES = 8 * 2**20            # bytes of address space per thread stack
PLACE_NANOSECONDS = 100_000_000    # interval of looking up the CPUs that the caller may use, if it stays on one

# A thread waits for the gate to open with a new region number, enters by adding 1 to the gate, and leaves by subtracting 1.
# After a while without a region it sleeps on the ticket, which every region changes after it has opened the gate.
WORKER = f"""
define internal ptr @worker(ptr %argument) nounwind {{
start:
  %index = ptrtoint ptr %argument to i64
  br label %spin
spin:
  %last = phi i64 [ 0, %start ], [ %last, %again ], [ %number, %left ], [ %last, %lost ], [ %last, %woken ]
  %deadline = phi i64 [ 0, %start ], [ %deadline, %again ], [ %deadline.next, %left ], [ %deadline, %lost ], [ %deadline, %woken ]
  %turn = phi i64 [ 0, %start ], [ %turn.next, %again ], [ 0, %left ], [ %turn, %lost ], [ 0, %woken ]
  %gate = load atomic i64, ptr {at("gate")} acquire, align 8
  %number = lshr i64 %gate, 32
  %open.bit = and i64 %gate, {OPEN}
  %open = icmp ne i64 %open.bit, 0
  %new = icmp ne i64 %number, %last
  %wanted = and i1 %open, %new
  br i1 %wanted, label %enter, label %idle
enter:
  %entered = add i64 %gate, 1
  %pair = cmpxchg ptr {at("gate")}, i64 %gate, i64 %entered acq_rel monotonic
  %inside = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %inside, label %member, label %lost
lost:
  br label %spin
member:
{get("team")}
  %is.member = icmp ult i64 %index, %team
  br i1 %is.member, label %work, label %leave
work:
  %done = call i64 @work(i64 %index)
  br label %leave
leave:
  %gate.before = atomicrmw sub ptr {at("gate")}, i64 1 acq_rel
  %gate.bits = and i64 %gate.before, {2 * WAITING - 1}
  %waited.for = icmp eq i64 %gate.bits, {WAITING + 1}
  br i1 %waited.for, label %wake, label %gone
wake:
  %woke = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {at("gate")}, i32 129, i32 1, ptr null, ptr null, i32 0)
  br label %gone
gone:
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
  %seen = load atomic i32, ptr {at("ticket")} seq_cst, align 8
  %sleepers = atomicrmw add ptr {at("sleepers")}, i64 1 seq_cst
  %gate.now = load atomic i64, ptr {at("gate")} seq_cst, align 8
  %number.now = lshr i64 %gate.now, 32
  %came = icmp ne i64 %number.now, %last
  %open.now = and i64 %gate.now, {OPEN}
  %is.open = icmp ne i64 %open.now, 0
  %stay = and i1 %came, %is.open
  br i1 %stay, label %awake, label %wait
wait:
  %waited = call i64 (i64, ...) @syscall(i64 FUTEX, ptr {at("ticket")}, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  br label %awake
awake:
  %sleepers.before = atomicrmw sub ptr {at("sleepers")}, i64 1 seq_cst
  br label %woken
woken:
  br label %spin
}}

define internal i64 @start_workers(i64 %threads) nounwind {{
start:
  %capped = call i64 @llvm.umin.i64(i64 %threads, i64 {MOST_THREADS})
  %wanted = sub i64 %capped, 1
{get("started")}
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
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 {STACK_BYTES})
{put("place_at", "0")}
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
{put("started", "%k")}
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %unblocked = call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  ret i64 %k
done:
  ret i64 %wanted
}}
"""

# Restrict the workers to the CPUs that the caller may use, without its current one.  0: there is no other.
PLACE = f"""
define internal i64 @place(i64 %now, i64 %workers) nounwind {{
start:
  %cpu.short = call i32 @sched_getcpu()
  %cpu = sext i32 %cpu.short to i64
{get("cpu", "cpu.before")}
{get("place_at")}
  %same = icmp eq i64 %cpu, %cpu.before
  %early = icmp slt i64 %now, %place_at
  %keep = and i1 %same, %early
  br i1 %keep, label %kept, label %look
kept:
{get("has_room")}
  ret i64 %has_room
look:
  %next = add i64 %now, {PLACE_NANOSECONDS}
{put("place_at", "%next")}
{put("cpu", "%cpu")}
{put("has_room", "1")}
  %mask = alloca [{CPU_BYTES} x i8], align 16
  %failed = call i32 @sched_getaffinity(i32 0, i64 {CPU_BYTES}, ptr %mask)
  %bad = icmp ne i32 %failed, 0
  %known = icmp ult i64 %cpu, {8 * CPU_BYTES}
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
  %all = load <{CPU_BYTES // 8} x i64>, ptr %mask, align 16
  %any = call i64 @llvm.vector.reduce.or.v{CPU_BYTES // 8}i64(<{CPU_BYTES // 8} x i64> %all)
  %none = icmp eq i64 %any, 0
  br i1 %none, label %no.room, label %move
no.room:
{put("has_room", "0")}
  ret i64 0
move:
  %k = phi i64 [ 0, %clear ], [ %k.next, %move ]
  %k.next = add i64 %k, 1
  %handle.at = getelementptr i64, ptr @handles, i64 %k
  %handle = load i64, ptr %handle.at
  %ignored = call i32 @pthread_setaffinity_np(i64 %handle, i64 {CPU_BYTES}, ptr %mask)
  %moved = icmp eq i64 %k.next, %workers
  br i1 %moved, label %done, label %move
done:
  ret i64 1
}}
"""
