define internal void @k0(ptr noalias readonly %p0, ptr noalias readonly %p1, ptr noalias %p2) #1 {
entry:
  %v1 = load <2 x double>, ptr %p0, align 8
  %v2 = load i64, ptr %p1, align 8
  %v3 = mul i64 %v2, 3
  %v4 = getelementptr double, ptr %p2, i64 %v3
  %v5 = load <2 x double>, ptr %v4, align 8
  %v6 = fadd <2 x double> %v5, %v1
  store <2 x double> %v6, ptr %v4, align 8
  %v7 = getelementptr double, ptr %p0, i64 2
  %v8 = load double, ptr %v7, align 8
  %v9 = getelementptr double, ptr %p2, i64 2
  %v10 = mul i64 %v2, 3
  %v11 = getelementptr double, ptr %v9, i64 %v10
  %v12 = load double, ptr %v11, align 8
  %v13 = fadd double %v12, %v8
  store double %v13, ptr %v11, align 8
  %v14 = getelementptr double, ptr %p0, i64 3
  %v15 = load <2 x double>, ptr %v14, align 8
  %v16 = getelementptr i64, ptr %p1, i64 1
  %v17 = load i64, ptr %v16, align 8
  %v18 = mul i64 %v17, 3
  %v19 = getelementptr double, ptr %p2, i64 %v18
  %v20 = load <2 x double>, ptr %v19, align 8
  %v21 = fadd <2 x double> %v20, %v15
  store <2 x double> %v21, ptr %v19, align 8
  %v22 = getelementptr double, ptr %p0, i64 5
  %v23 = load double, ptr %v22, align 8
  %v24 = mul i64 %v17, 3
  %v25 = getelementptr double, ptr %v9, i64 %v24
  %v26 = load double, ptr %v25, align 8
  %v27 = fadd double %v26, %v23
  store double %v27, ptr %v25, align 8
  %v28 = getelementptr double, ptr %p0, i64 6
  %v29 = load <2 x double>, ptr %v28, align 8
  %v30 = getelementptr i64, ptr %p1, i64 2
  %v31 = load i64, ptr %v30, align 8
  %v32 = mul i64 %v31, 3
  %v33 = getelementptr double, ptr %p2, i64 %v32
  %v34 = load <2 x double>, ptr %v33, align 8
  %v35 = fadd <2 x double> %v34, %v29
  store <2 x double> %v35, ptr %v33, align 8
  %v36 = getelementptr double, ptr %p0, i64 8
  %v37 = load double, ptr %v36, align 8
  %v38 = mul i64 %v31, 3
  %v39 = getelementptr double, ptr %v9, i64 %v38
  %v40 = load double, ptr %v39, align 8
  %v41 = fadd double %v40, %v37
  store double %v41, ptr %v39, align 8
  %v42 = getelementptr double, ptr %p0, i64 9
  %v43 = load <2 x double>, ptr %v42, align 8
  %v44 = getelementptr i64, ptr %p1, i64 3
  %v45 = load i64, ptr %v44, align 8
  %v46 = mul i64 %v45, 3
  %v47 = getelementptr double, ptr %p2, i64 %v46
  %v48 = load <2 x double>, ptr %v47, align 8
  %v49 = fadd <2 x double> %v48, %v43
  store <2 x double> %v49, ptr %v47, align 8
  %v50 = getelementptr double, ptr %p0, i64 11
  %v51 = load double, ptr %v50, align 8
  %v52 = mul i64 %v45, 3
  %v53 = getelementptr double, ptr %v9, i64 %v52
  %v54 = load double, ptr %v53, align 8
  %v55 = fadd double %v54, %v51
  store double %v55, ptr %v53, align 8
  ret void
}
