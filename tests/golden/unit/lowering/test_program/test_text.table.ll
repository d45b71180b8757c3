define i32 @bw_program(ptr %buffers, ptr %arena) #0 {
entry:
  %record = getelementptr i8, ptr %arena, i64 0
  %memory = getelementptr i8, ptr %arena, i64 64
  %argument0.slot = getelementptr ptr, ptr %buffers, i64 0
  %argument0 = load ptr, ptr %argument0.slot
  %argument1.slot = getelementptr ptr, ptr %buffers, i64 1
  %argument1 = load ptr, ptr %argument1.slot
  %result0.slot = getelementptr ptr, ptr %buffers, i64 2
  %result0 = load ptr, ptr %result0.slot
  %result1.slot = getelementptr ptr, ptr %buffers, i64 3
  %result1 = load ptr, ptr %result1.slot
  %result2.slot = getelementptr ptr, ptr %buffers, i64 4
  %result2 = load ptr, ptr %result2.slot
  %bases = alloca [7 x ptr]
  %bases.0 = getelementptr ptr, ptr %bases, i64 0
  store ptr %argument0, ptr %bases.0
  %bases.1 = getelementptr ptr, ptr %bases, i64 1
  store ptr %argument1, ptr %bases.1
  %bases.2 = getelementptr ptr, ptr %bases, i64 2
  store ptr %result0, ptr %bases.2
  %bases.3 = getelementptr ptr, ptr %bases, i64 3
  store ptr %result1, ptr %bases.3
  %bases.4 = getelementptr ptr, ptr %bases, i64 4
  store ptr %result2, ptr %bases.4
  %bases.5 = getelementptr ptr, ptr %bases, i64 5
  store ptr %record, ptr %bases.5
  %bases.6 = getelementptr ptr, ptr %bases, i64 6
  store ptr %memory, ptr %bases.6
  %told = alloca [0 x i64]
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %go ]
  %more = icmp slt i64 %at, 28
  br i1 %more, label %body, label %done
body:
  %row = getelementptr i64, ptr @bw_program.table, i64 %at
  %length = load i64, ptr %row
  %which.at = getelementptr i64, ptr %row, i64 1
  %which = load i64, ptr %which.at
  %function.at = getelementptr ptr, ptr @bw_program.functions, i64 %which
  %function = load ptr, ptr %function.at
  %status = call i32 %function(ptr %bases, ptr %told, ptr %row)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %leave, label %go
leave:
  ret i32 %status
go:
  %next = add i64 %at, %length
  br label %head
done:
  ret i32 0
}
