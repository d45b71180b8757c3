define internal void @k0(ptr noalias readonly %p0, ptr noalias %p1) #1 {
entry:
  %v1 = icmp sge <8 x i64> <i64 -1, i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6>, splat (i64 0)
  %v2 = icmp slt <8 x i64> <i64 -1, i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6>, splat (i64 4)
  %v3 = and <8 x i1> %v1, %v2
  %v4 = getelementptr double, ptr %p0, i64 -1
  %v5 = and <8 x i1> %v3, <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>
  %v6 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %v4, i32 8, <8 x i1> %v5, <8 x double> zeroinitializer)
  %v7 = select <8 x i1> %v3, <8 x double> %v6, <8 x double> splat (double 0x3FE0000000000000)
  call void @llvm.masked.store.v8f64.p0(<8 x double> %v7, ptr %p1, i32 8, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
  ret void
}
