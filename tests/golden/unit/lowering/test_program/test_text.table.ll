define i32 @bw_program(ptr %buffers, ptr %arena) #0 {
entry:
  %bases = alloca [6 x ptr]
  call void @llvm.memcpy.p0.p0.i64(ptr %bases, ptr %buffers, i64 40, i1 false)
  %last = getelementptr ptr, ptr %bases, i64 5
  store ptr %arena, ptr %last
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %go ]
  %more = icmp slt i64 %at, 28
  br i1 %more, label %body, label %done
body:
  %row = getelementptr i64, ptr @bw_table, i64 %at
  %length = load i64, ptr %row
  %which.at = getelementptr i64, ptr %row, i64 1
  %which = load i64, ptr %which.at
  %function.at = getelementptr ptr, ptr @bw_functions, i64 %which
  %function = load ptr, ptr %function.at
  %status = call i32 %function(ptr %bases, ptr %row)
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
