define i32 @bw_program(ptr %buffers, ptr %arena) #0 {
entry:
  %argument0.slot = getelementptr ptr, ptr %buffers, i64 0
  %argument0 = load ptr, ptr %argument0.slot
  %arena0.0 = getelementptr i8, ptr %arena, i64 64
  call void @k0(ptr %argument0, ptr %arena0.0)
  %argument1.slot = getelementptr ptr, ptr %buffers, i64 1
  %argument1 = load ptr, ptr %argument1.slot
  %arena128.0 = getelementptr i8, ptr %arena, i64 192
  call void @gemm1(ptr %arena0.0, ptr %argument1, ptr %arena128.0)
  %result0.slot = getelementptr ptr, ptr %buffers, i64 2
  %result0 = load ptr, ptr %result0.slot
  %result2.slot = getelementptr ptr, ptr %buffers, i64 4
  %result2 = load ptr, ptr %result2.slot
  call void @k2(ptr %arena128.0, ptr %result0, ptr %result2)
  %result1.slot = getelementptr ptr, ptr %buffers, i64 3
  %result1 = load ptr, ptr %result1.slot
  call void @copy3(ptr %argument0, ptr %result1)
  ret i32 0
}
