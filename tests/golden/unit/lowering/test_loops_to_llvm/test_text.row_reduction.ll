define internal void @k0(ptr noalias readonly %p0, ptr noalias %p1) #1 {
entry:
  %a2 = alloca [1 x float], align 64
  %a3 = alloca [32 x float], align 64
  %a4 = alloca [32 x double], align 64
  br label %pre1
pre1:
  br label %head1
head1:
  %i1 = phi i64 [ 0, %pre1 ], [ %n1, %latch1 ]
  %c1 = icmp slt i64 %i1, 3
  br i1 %c1, label %body1, label %exit1
body1:
  br label %pre5
pre5:
  br label %head5
head5:
  %i5 = phi i64 [ 0, %pre5 ], [ %n5, %latch5 ]
  %c5 = icmp slt i64 %i5, 32
  br i1 %c5, label %body5, label %exit5
body5:
  %v6 = getelementptr float, ptr %a3, i64 %i5
  store float 0x0000000000000000, ptr %v6
  %v7 = getelementptr double, ptr %a4, i64 %i5
  store double 0x0000000000000000, ptr %v7
  br label %latch5
latch5:
  %n5 = add nuw nsw i64 %i5, 1
  br label %head5
exit5:
  store float 0x0000000000000000, ptr %a2
  br label %pre8
pre8:
  br label %head8
head8:
  %i8 = phi i64 [ 0, %pre8 ], [ %n8, %latch8 ]
  %c8 = icmp slt i64 %i8, 1
  br i1 %c8, label %body8, label %exit8
body8:
  %v9 = mul i64 %i8, 64
  br label %pre10
pre10:
  br label %head10
head10:
  %i10 = phi i64 [ 0, %pre10 ], [ %n10, %latch10 ]
  %c10 = icmp slt i64 %i10, 64
  br i1 %c10, label %body10, label %exit10
body10:
  %v11 = add i64 %i10, %v9
  %v12 = mul i64 %v11, 32
  br label %pre13
pre13:
  br label %head13
head13:
  %i13 = phi i64 [ 0, %pre13 ], [ %n13, %latch13 ]
  %c13 = icmp slt i64 %i13, 32
  br i1 %c13, label %body13, label %exit13
body13:
  %v14 = add i64 %v12, %i13
  %v15 = mul nsw i64 %i1, 2100
  %v16 = add nsw i64 %v15, %v14
  %v17 = getelementptr inbounds float, ptr %p0, i64 %v16
  %v18 = load float, ptr %v17, align 4
  %v19 = getelementptr float, ptr %a3, i64 %i13
  %v20 = load float, ptr %v19, align 4
  %v21 = fadd float %v20, %v18
  store float %v21, ptr %v19, align 4
  br label %latch13
latch13:
  %n13 = add nuw nsw i64 %i13, 1
  br label %head13
exit13:
  br label %latch10
latch10:
  %n10 = add nuw nsw i64 %i10, 1
  br label %head10
exit10:
  br label %pre22
pre22:
  br label %head22
head22:
  %i22 = phi i64 [ 0, %pre22 ], [ %n22, %latch22 ]
  %c22 = icmp slt i64 %i22, 32
  br i1 %c22, label %body22, label %exit22
body22:
  %v23 = getelementptr float, ptr %a3, i64 %i22
  %v24 = getelementptr double, ptr %a4, i64 %i22
  %v25 = load float, ptr %v23, align 4
  %v26 = fpext float %v25 to double
  %v27 = load double, ptr %v24, align 8
  %v28 = fadd double %v27, %v26
  store double %v28, ptr %v24, align 8
  store float 0x0000000000000000, ptr %v23
  br label %latch22
latch22:
  %n22 = add nuw nsw i64 %i22, 1
  br label %head22
exit22:
  br label %latch8
latch8:
  %n8 = add nuw nsw i64 %i8, 1
  br label %head8
exit8:
  br label %pre29
pre29:
  br label %head29
head29:
  %i29 = phi i64 [ 0, %pre29 ], [ %n29, %latch29 ]
  %c29 = icmp slt i64 %i29, 1
  br i1 %c29, label %body29, label %exit29
body29:
  %v30 = add i64 %i29, 64
  %v31 = mul i64 %v30, 32
  br label %pre32
pre32:
  br label %head32
head32:
  %i32 = phi i64 [ 0, %pre32 ], [ %n32, %latch32 ]
  %c32 = icmp slt i64 %i32, 32
  br i1 %c32, label %body32, label %exit32
body32:
  %v33 = add i64 %v31, %i32
  %v34 = mul nsw i64 %i1, 2100
  %v35 = add nsw i64 %v34, %v33
  %v36 = getelementptr inbounds float, ptr %p0, i64 %v35
  %v37 = load float, ptr %v36, align 4
  %v38 = getelementptr float, ptr %a3, i64 %i32
  %v39 = load float, ptr %v38, align 4
  %v40 = fadd float %v39, %v37
  store float %v40, ptr %v38, align 4
  br label %latch32
latch32:
  %n32 = add nuw nsw i64 %i32, 1
  br label %head32
exit32:
  br label %latch29
latch29:
  %n29 = add nuw nsw i64 %i29, 1
  br label %head29
exit29:
  br label %pre41
pre41:
  br label %head41
head41:
  %i41 = phi i64 [ 0, %pre41 ], [ %n41, %latch41 ]
  %c41 = icmp slt i64 %i41, 20
  br i1 %c41, label %body41, label %exit41
body41:
  %v42 = add i64 %i41, 2080
  %v43 = mul nsw i64 %i1, 2100
  %v44 = add nsw i64 %v43, %v42
  %v45 = getelementptr inbounds float, ptr %p0, i64 %v44
  %v46 = load float, ptr %v45, align 4
  %v47 = getelementptr float, ptr %a3, i64 %i41
  %v48 = load float, ptr %v47, align 4
  %v49 = fadd float %v48, %v46
  store float %v49, ptr %v47, align 4
  br label %latch41
latch41:
  %n41 = add nuw nsw i64 %i41, 1
  br label %head41
exit41:
  br label %pre50
pre50:
  br label %head50
head50:
  %i50 = phi i64 [ 0, %pre50 ], [ %n50, %latch50 ]
  %c50 = icmp slt i64 %i50, 32
  br i1 %c50, label %body50, label %exit50
body50:
  %v51 = getelementptr float, ptr %a3, i64 %i50
  %v52 = getelementptr double, ptr %a4, i64 %i50
  %v53 = load float, ptr %v51, align 4
  %v54 = fpext float %v53 to double
  %v55 = load double, ptr %v52, align 8
  %v56 = fadd double %v55, %v54
  store double %v56, ptr %v52, align 8
  store float 0x0000000000000000, ptr %v51
  br label %latch50
latch50:
  %n50 = add nuw nsw i64 %i50, 1
  br label %head50
exit50:
  br label %pre57
pre57:
  br label %head57
head57:
  %i57 = phi i64 [ 0, %pre57 ], [ %n57, %latch57 ]
  %c57 = icmp slt i64 %i57, 16
  br i1 %c57, label %body57, label %exit57
body57:
  %v58 = getelementptr double, ptr %a4, i64 %i57
  %v59 = add i64 %i57, 16
  %v60 = getelementptr double, ptr %a4, i64 %v59
  %v61 = load double, ptr %v60, align 8
  %v62 = load double, ptr %v58, align 8
  %v63 = fadd double %v62, %v61
  store double %v63, ptr %v58, align 8
  br label %latch57
latch57:
  %n57 = add nuw nsw i64 %i57, 1
  br label %head57
exit57:
  br label %pre64
pre64:
  br label %head64
head64:
  %i64 = phi i64 [ 0, %pre64 ], [ %n64, %latch64 ]
  %c64 = icmp slt i64 %i64, 8
  br i1 %c64, label %body64, label %exit64
body64:
  %v65 = getelementptr double, ptr %a4, i64 %i64
  %v66 = add i64 %i64, 8
  %v67 = getelementptr double, ptr %a4, i64 %v66
  %v68 = load double, ptr %v67, align 8
  %v69 = load double, ptr %v65, align 8
  %v70 = fadd double %v69, %v68
  store double %v70, ptr %v65, align 8
  br label %latch64
latch64:
  %n64 = add nuw nsw i64 %i64, 1
  br label %head64
exit64:
  br label %pre71
pre71:
  br label %head71
head71:
  %i71 = phi i64 [ 0, %pre71 ], [ %n71, %latch71 ]
  %c71 = icmp slt i64 %i71, 4
  br i1 %c71, label %body71, label %exit71
body71:
  %v72 = getelementptr double, ptr %a4, i64 %i71
  %v73 = add i64 %i71, 4
  %v74 = getelementptr double, ptr %a4, i64 %v73
  %v75 = load double, ptr %v74, align 8
  %v76 = load double, ptr %v72, align 8
  %v77 = fadd double %v76, %v75
  store double %v77, ptr %v72, align 8
  br label %latch71
latch71:
  %n71 = add nuw nsw i64 %i71, 1
  br label %head71
exit71:
  br label %pre78
pre78:
  br label %head78
head78:
  %i78 = phi i64 [ 0, %pre78 ], [ %n78, %latch78 ]
  %c78 = icmp slt i64 %i78, 2
  br i1 %c78, label %body78, label %exit78
body78:
  %v79 = getelementptr double, ptr %a4, i64 %i78
  %v80 = add i64 %i78, 2
  %v81 = getelementptr double, ptr %a4, i64 %v80
  %v82 = load double, ptr %v81, align 8
  %v83 = load double, ptr %v79, align 8
  %v84 = fadd double %v83, %v82
  store double %v84, ptr %v79, align 8
  br label %latch78
latch78:
  %n78 = add nuw nsw i64 %i78, 1
  br label %head78
exit78:
  br label %pre85
pre85:
  br label %head85
head85:
  %i85 = phi i64 [ 0, %pre85 ], [ %n85, %latch85 ]
  %c85 = icmp slt i64 %i85, 1
  br i1 %c85, label %body85, label %exit85
body85:
  %v86 = getelementptr double, ptr %a4, i64 %i85
  %v87 = add i64 %i85, 1
  %v88 = getelementptr double, ptr %a4, i64 %v87
  %v89 = load double, ptr %v88, align 8
  %v90 = load double, ptr %v86, align 8
  %v91 = fadd double %v90, %v89
  store double %v91, ptr %v86, align 8
  br label %latch85
latch85:
  %n85 = add nuw nsw i64 %i85, 1
  br label %head85
exit85:
  %v92 = load double, ptr %a4, align 8
  %v93 = fptrunc double %v92 to float
  store float %v93, ptr %a2
  %v94 = load float, ptr %a2, align 4
  %v95 = getelementptr inbounds float, ptr %p1, i64 %i1
  store float %v94, ptr %v95, align 4
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  br label %head1
exit1:
  ret void
}
