define internal void @k0(ptr noalias readonly %p0, ptr noalias readonly %p1, ptr noalias %p2) #1 {
entry:
  %v6 = load <16 x i8>, ptr %p1, align 1
  %v7 = icmp ne <16 x i8> %v6, zeroinitializer
  %v13 = getelementptr i8, ptr %p1, i64 16
  %v14 = load <16 x i8>, ptr %v13, align 1
  %v15 = icmp ne <16 x i8> %v14, zeroinitializer
  %v21 = getelementptr i8, ptr %p1, i64 32
  %v22 = load <8 x i8>, ptr %v21, align 1
  %v23 = icmp ne <8 x i8> %v22, zeroinitializer
  br label %pre1
pre1:
  br label %body1
body1:
  %i1 = phi i64 [ 0, %pre1 ], [ %n1, %latch1 ]
  %v2 = mul nsw i64 %i1, 40
  %v3 = getelementptr double, ptr %p0, i64 %v2
  %v4 = load <16 x double>, ptr %v3, align 8
  %v5 = fmul <16 x double> %v4, splat (double 0x4000000000000000)
  %v8 = select <16 x i1> %v7, <16 x double> %v5, <16 x double> splat (double 0x3FE0000000000000)
  %v9 = getelementptr double, ptr %p2, i64 %v2
  store <16 x double> %v8, ptr %v9, align 8
  %v10 = getelementptr double, ptr %v3, i64 16
  %v11 = load <16 x double>, ptr %v10, align 8
  %v12 = fmul <16 x double> %v11, splat (double 0x4000000000000000)
  %v16 = select <16 x i1> %v15, <16 x double> %v12, <16 x double> splat (double 0x3FE0000000000000)
  %v17 = getelementptr double, ptr %v9, i64 16
  store <16 x double> %v16, ptr %v17, align 8
  %v18 = getelementptr double, ptr %v3, i64 32
  %v19 = load <8 x double>, ptr %v18, align 8
  %v20 = fmul <8 x double> %v19, splat (double 0x4000000000000000)
  %v24 = select <8 x i1> %v23, <8 x double> %v20, <8 x double> splat (double 0x3FE0000000000000)
  %v25 = getelementptr double, ptr %v9, i64 32
  store <8 x double> %v24, ptr %v25, align 8
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  %c1 = icmp slt i64 %n1, 3
  br i1 %c1, label %body1, label %exit1
exit1:
  ret void
}
