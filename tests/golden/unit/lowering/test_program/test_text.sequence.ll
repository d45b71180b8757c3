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
  call void @k0(ptr %argument0, ptr %memory)
  %memory.128 = getelementptr i8, ptr %memory, i64 128
  call void @gemm1(ptr %memory, ptr %argument1, ptr %memory.128)
  call void @k2(ptr %memory.128, ptr %result0, ptr %result2)
  call void @copy3(ptr %argument0, ptr %result1)
  ret i32 0
}
