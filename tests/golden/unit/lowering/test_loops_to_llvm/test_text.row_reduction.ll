define internal void @k0(ptr noalias readonly %p0, ptr noalias %p1) #1 {
entry:
  %a2 = alloca float, align 64
  %a3 = alloca <32 x float>, align 64
  %a4 = alloca <32 x double>, align 64
  br label %pre1
pre1:
  br label %body1
body1:
  %i1 = phi i64 [ 0, %pre1 ], [ %n1, %latch1 ]
  store <32 x float> splat (float 0x0000000000000000), ptr %a3, align 64
  store <32 x double> splat (double 0x0000000000000000), ptr %a4, align 64
  store float 0x0000000000000000, ptr %a2, align 4
  %v13 = mul nsw i64 %i1, 2100
  %v14 = getelementptr float, ptr %p0, i64 %v13
  br label %pre5
pre5:
  br label %body5
body5:
  %i5 = phi i64 [ 0, %pre5 ], [ %n5, %latch5 ]
  %v6 = mul nuw nsw i64 %i5, 2048
  %v7 = sub nsw i64 2080, %v6
  %v8 = lshr i64 %v7, 5
  %v9 = call i64 @llvm.smin.i64(i64 %v8, i64 64)
  br label %pre10
pre10:
  br label %body10
body10:
  %i10 = phi i64 [ 0, %pre10 ], [ %n10, %latch10 ]
  %v11 = mul nuw nsw i64 %i10, 32
  %v12 = add nuw nsw i64 %v6, %v11
  %v15 = getelementptr float, ptr %v14, i64 %v12
  %v16 = load <32 x float>, ptr %v15, align 4
  %v17 = load <32 x float>, ptr %a3, align 4
  %v18 = fadd <32 x float> %v17, %v16
  store <32 x float> %v18, ptr %a3, align 4
  br label %latch10
latch10:
  %n10 = add nuw nsw i64 %i10, 1
  %c10 = icmp slt i64 %n10, %v9
  br i1 %c10, label %body10, label %exit10
exit10:
  %v19 = icmp eq i64 %v9, 64
  br i1 %v19, label %flush20, label %on20
flush20:
  %v21 = load <32 x float>, ptr %a3, align 64
  %v22 = fpext <32 x float> %v21 to <32 x double>
  %v23 = load <32 x double>, ptr %a4, align 64
  %v24 = fadd <32 x double> %v23, %v22
  store <32 x double> %v24, ptr %a4, align 64
  store <32 x float> splat (float 0x0000000000000000), ptr %a3, align 64
  br label %on20
on20:
  br label %latch5
latch5:
  %n5 = add nuw nsw i64 %i5, 1
  %c5 = icmp slt i64 %n5, 2
  br i1 %c5, label %body5, label %exit5
exit5:
  %v25 = getelementptr float, ptr %v14, i64 2080
  %v26 = load <16 x float>, ptr %v25, align 4
  %v27 = load <16 x float>, ptr %a3, align 4
  %v28 = fadd <16 x float> %v27, %v26
  store <16 x float> %v28, ptr %a3, align 4
  %v29 = getelementptr float, ptr %v14, i64 2096
  %v30 = load <4 x float>, ptr %v29, align 4
  %v31 = getelementptr float, ptr %a3, i64 16
  %v32 = load <4 x float>, ptr %v31, align 4
  %v33 = fadd <4 x float> %v32, %v30
  store <4 x float> %v33, ptr %v31, align 4
  %v34 = load <32 x float>, ptr %a3, align 64
  %v35 = fpext <32 x float> %v34 to <32 x double>
  %v36 = load <32 x double>, ptr %a4, align 64
  %v37 = fadd <32 x double> %v36, %v35
  store <32 x double> %v37, ptr %a4, align 64
  store <32 x float> splat (float 0x0000000000000000), ptr %a3, align 64
  %v38 = load <32 x double>, ptr %a4, align 64
  %v39 = shufflevector <32 x double> %v38, <32 x double> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v40 = shufflevector <32 x double> %v38, <32 x double> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v41 = fadd <16 x double> %v39, %v40
  %v42 = shufflevector <16 x double> %v41, <16 x double> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v43 = shufflevector <16 x double> %v41, <16 x double> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v44 = fadd <8 x double> %v42, %v43
  %v45 = shufflevector <8 x double> %v44, <8 x double> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v46 = shufflevector <8 x double> %v44, <8 x double> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v47 = fadd <4 x double> %v45, %v46
  %v48 = shufflevector <4 x double> %v47, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %v49 = shufflevector <4 x double> %v47, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %v50 = fadd <2 x double> %v48, %v49
  %v51 = shufflevector <2 x double> %v50, <2 x double> poison, <1 x i32> <i32 0>
  %v52 = shufflevector <2 x double> %v50, <2 x double> poison, <1 x i32> <i32 1>
  %v53 = extractelement <1 x double> %v51, i64 0
  %v54 = extractelement <1 x double> %v52, i64 0
  %v55 = fadd double %v53, %v54
  %v56 = fptrunc double %v55 to float
  store float %v56, ptr %a2, align 4
  %v57 = load float, ptr %a2, align 4
  %v58 = getelementptr float, ptr %p1, i64 %i1
  store float %v57, ptr %v58, align 4
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  %c1 = icmp slt i64 %n1, 3
  br i1 %c1, label %body1, label %exit1
exit1:
  ret void
}
