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
  %v5 = getelementptr float, ptr %a3, i64 8
  %v6 = getelementptr float, ptr %a3, i64 16
  %v7 = getelementptr float, ptr %a3, i64 24
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %a3, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v5, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v6, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v7, align 4
  %v8 = getelementptr double, ptr %a4, i64 4
  %v9 = getelementptr double, ptr %a4, i64 8
  %v10 = getelementptr double, ptr %a4, i64 12
  %v11 = getelementptr double, ptr %a4, i64 16
  %v12 = getelementptr double, ptr %a4, i64 20
  %v13 = getelementptr double, ptr %a4, i64 24
  %v14 = getelementptr double, ptr %a4, i64 28
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %a4, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v8, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v9, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v10, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v11, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v12, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v13, align 8
  store <4 x double> <double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000, double 0x0000000000000000>, ptr %v14, align 8
  store float 0x0000000000000000, ptr %a2
  br label %pre15
pre15:
  br label %head15
head15:
  %i15 = phi i64 [ 0, %pre15 ], [ %n15, %latch15 ]
  %c15 = icmp slt i64 %i15, 1
  br i1 %c15, label %body15, label %exit15
body15:
  %v16 = mul i64 %i15, 64
  br label %pre17
pre17:
  br label %head17
head17:
  %i17 = phi i64 [ 0, %pre17 ], [ %n17, %latch17 ]
  %c17 = icmp slt i64 %i17, 64
  br i1 %c17, label %body17, label %exit17
body17:
  %v18 = add i64 %i17, %v16
  %v19 = mul i64 %v18, 32
  br label %pre20
pre20:
  br label %head20
head20:
  %i20 = phi i64 [ 0, %pre20 ], [ %n20, %latch20 ]
  %c20 = icmp slt i64 %i20, 32
  br i1 %c20, label %body20, label %exit20
body20:
  %v21 = add i64 %v19, %i20
  %v22 = mul nsw i64 %i1, 2100
  %v23 = add nsw i64 %v22, %v21
  %v24 = getelementptr inbounds float, ptr %p0, i64 %v23
  %v25 = load float, ptr %v24, align 4
  %v26 = getelementptr float, ptr %a3, i64 %i20
  %v27 = load float, ptr %v26, align 4
  %v28 = fadd float %v27, %v25
  store float %v28, ptr %v26, align 4
  br label %latch20
latch20:
  %n20 = add nuw nsw i64 %i20, 1
  br label %head20, !llvm.loop !12
exit20:
  br label %latch17
latch17:
  %n17 = add nuw nsw i64 %i17, 1
  br label %head17
exit17:
  %v29 = getelementptr float, ptr %a3, i64 4
  %v30 = getelementptr float, ptr %a3, i64 8
  %v31 = getelementptr float, ptr %a3, i64 12
  %v32 = getelementptr float, ptr %a3, i64 16
  %v33 = getelementptr float, ptr %a3, i64 20
  %v34 = getelementptr float, ptr %a3, i64 24
  %v35 = getelementptr float, ptr %a3, i64 28
  %v36 = load <4 x float>, ptr %a3, align 4
  %v37 = load <4 x float>, ptr %v29, align 4
  %v38 = load <4 x float>, ptr %v30, align 4
  %v39 = load <4 x float>, ptr %v31, align 4
  %v40 = load <4 x float>, ptr %v32, align 4
  %v41 = load <4 x float>, ptr %v33, align 4
  %v42 = load <4 x float>, ptr %v34, align 4
  %v43 = load <4 x float>, ptr %v35, align 4
  %v44 = fpext <4 x float> %v36 to <4 x double>
  %v45 = fpext <4 x float> %v37 to <4 x double>
  %v46 = fpext <4 x float> %v38 to <4 x double>
  %v47 = fpext <4 x float> %v39 to <4 x double>
  %v48 = fpext <4 x float> %v40 to <4 x double>
  %v49 = fpext <4 x float> %v41 to <4 x double>
  %v50 = fpext <4 x float> %v42 to <4 x double>
  %v51 = fpext <4 x float> %v43 to <4 x double>
  %v52 = getelementptr double, ptr %a4, i64 4
  %v53 = getelementptr double, ptr %a4, i64 8
  %v54 = getelementptr double, ptr %a4, i64 12
  %v55 = getelementptr double, ptr %a4, i64 16
  %v56 = getelementptr double, ptr %a4, i64 20
  %v57 = getelementptr double, ptr %a4, i64 24
  %v58 = getelementptr double, ptr %a4, i64 28
  %v59 = load <4 x double>, ptr %a4, align 8
  %v60 = load <4 x double>, ptr %v52, align 8
  %v61 = load <4 x double>, ptr %v53, align 8
  %v62 = load <4 x double>, ptr %v54, align 8
  %v63 = load <4 x double>, ptr %v55, align 8
  %v64 = load <4 x double>, ptr %v56, align 8
  %v65 = load <4 x double>, ptr %v57, align 8
  %v66 = load <4 x double>, ptr %v58, align 8
  %v67 = fadd <4 x double> %v59, %v44
  %v68 = fadd <4 x double> %v60, %v45
  %v69 = fadd <4 x double> %v61, %v46
  %v70 = fadd <4 x double> %v62, %v47
  %v71 = fadd <4 x double> %v63, %v48
  %v72 = fadd <4 x double> %v64, %v49
  %v73 = fadd <4 x double> %v65, %v50
  %v74 = fadd <4 x double> %v66, %v51
  %v75 = getelementptr double, ptr %a4, i64 4
  %v76 = getelementptr double, ptr %a4, i64 8
  %v77 = getelementptr double, ptr %a4, i64 12
  %v78 = getelementptr double, ptr %a4, i64 16
  %v79 = getelementptr double, ptr %a4, i64 20
  %v80 = getelementptr double, ptr %a4, i64 24
  %v81 = getelementptr double, ptr %a4, i64 28
  store <4 x double> %v67, ptr %a4, align 8
  store <4 x double> %v68, ptr %v75, align 8
  store <4 x double> %v69, ptr %v76, align 8
  store <4 x double> %v70, ptr %v77, align 8
  store <4 x double> %v71, ptr %v78, align 8
  store <4 x double> %v72, ptr %v79, align 8
  store <4 x double> %v73, ptr %v80, align 8
  store <4 x double> %v74, ptr %v81, align 8
  %v82 = getelementptr float, ptr %a3, i64 8
  %v83 = getelementptr float, ptr %a3, i64 16
  %v84 = getelementptr float, ptr %a3, i64 24
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %a3, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v82, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v83, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v84, align 4
  br label %latch15
latch15:
  %n15 = add nuw nsw i64 %i15, 1
  br label %head15
exit15:
  br label %pre85
pre85:
  br label %head85
head85:
  %i85 = phi i64 [ 0, %pre85 ], [ %n85, %latch85 ]
  %c85 = icmp slt i64 %i85, 1
  br i1 %c85, label %body85, label %exit85
body85:
  %v86 = add i64 %i85, 64
  %v87 = mul i64 %v86, 32
  br label %pre88
pre88:
  br label %head88
head88:
  %i88 = phi i64 [ 0, %pre88 ], [ %n88, %latch88 ]
  %c88 = icmp slt i64 %i88, 32
  br i1 %c88, label %body88, label %exit88
body88:
  %v89 = add i64 %v87, %i88
  %v90 = mul nsw i64 %i1, 2100
  %v91 = add nsw i64 %v90, %v89
  %v92 = getelementptr inbounds float, ptr %p0, i64 %v91
  %v93 = load float, ptr %v92, align 4
  %v94 = getelementptr float, ptr %a3, i64 %i88
  %v95 = load float, ptr %v94, align 4
  %v96 = fadd float %v95, %v93
  store float %v96, ptr %v94, align 4
  br label %latch88
latch88:
  %n88 = add nuw nsw i64 %i88, 1
  br label %head88, !llvm.loop !12
exit88:
  br label %latch85
latch85:
  %n85 = add nuw nsw i64 %i85, 1
  br label %head85
exit85:
  br label %pre97
pre97:
  br label %head97
head97:
  %i97 = phi i64 [ 0, %pre97 ], [ %n97, %latch97 ]
  %c97 = icmp slt i64 %i97, 16
  br i1 %c97, label %body97, label %exit97
body97:
  %v98 = add i64 %i97, 0
  %v99 = add i64 %v98, 2080
  %v100 = mul nsw i64 %i1, 2100
  %v101 = add nsw i64 %v100, %v99
  %v102 = getelementptr inbounds float, ptr %p0, i64 %v101
  %v103 = load float, ptr %v102, align 4
  %v104 = getelementptr float, ptr %a3, i64 %v98
  %v105 = load float, ptr %v104, align 4
  %v106 = fadd float %v105, %v103
  store float %v106, ptr %v104, align 4
  br label %latch97
latch97:
  %n97 = add nuw nsw i64 %i97, 1
  br label %head97, !llvm.loop !11
exit97:
  br label %pre107
pre107:
  br label %head107
head107:
  %i107 = phi i64 [ 0, %pre107 ], [ %n107, %latch107 ]
  %c107 = icmp slt i64 %i107, 4
  br i1 %c107, label %body107, label %exit107
body107:
  %v108 = add i64 %i107, 16
  %v109 = add i64 %v108, 2080
  %v110 = mul nsw i64 %i1, 2100
  %v111 = add nsw i64 %v110, %v109
  %v112 = getelementptr inbounds float, ptr %p0, i64 %v111
  %v113 = load float, ptr %v112, align 4
  %v114 = getelementptr float, ptr %a3, i64 %v108
  %v115 = load float, ptr %v114, align 4
  %v116 = fadd float %v115, %v113
  store float %v116, ptr %v114, align 4
  br label %latch107
latch107:
  %n107 = add nuw nsw i64 %i107, 1
  br label %head107, !llvm.loop !10
exit107:
  %v117 = getelementptr float, ptr %a3, i64 4
  %v118 = getelementptr float, ptr %a3, i64 8
  %v119 = getelementptr float, ptr %a3, i64 12
  %v120 = getelementptr float, ptr %a3, i64 16
  %v121 = getelementptr float, ptr %a3, i64 20
  %v122 = getelementptr float, ptr %a3, i64 24
  %v123 = getelementptr float, ptr %a3, i64 28
  %v124 = load <4 x float>, ptr %a3, align 4
  %v125 = load <4 x float>, ptr %v117, align 4
  %v126 = load <4 x float>, ptr %v118, align 4
  %v127 = load <4 x float>, ptr %v119, align 4
  %v128 = load <4 x float>, ptr %v120, align 4
  %v129 = load <4 x float>, ptr %v121, align 4
  %v130 = load <4 x float>, ptr %v122, align 4
  %v131 = load <4 x float>, ptr %v123, align 4
  %v132 = fpext <4 x float> %v124 to <4 x double>
  %v133 = fpext <4 x float> %v125 to <4 x double>
  %v134 = fpext <4 x float> %v126 to <4 x double>
  %v135 = fpext <4 x float> %v127 to <4 x double>
  %v136 = fpext <4 x float> %v128 to <4 x double>
  %v137 = fpext <4 x float> %v129 to <4 x double>
  %v138 = fpext <4 x float> %v130 to <4 x double>
  %v139 = fpext <4 x float> %v131 to <4 x double>
  %v140 = getelementptr double, ptr %a4, i64 4
  %v141 = getelementptr double, ptr %a4, i64 8
  %v142 = getelementptr double, ptr %a4, i64 12
  %v143 = getelementptr double, ptr %a4, i64 16
  %v144 = getelementptr double, ptr %a4, i64 20
  %v145 = getelementptr double, ptr %a4, i64 24
  %v146 = getelementptr double, ptr %a4, i64 28
  %v147 = load <4 x double>, ptr %a4, align 8
  %v148 = load <4 x double>, ptr %v140, align 8
  %v149 = load <4 x double>, ptr %v141, align 8
  %v150 = load <4 x double>, ptr %v142, align 8
  %v151 = load <4 x double>, ptr %v143, align 8
  %v152 = load <4 x double>, ptr %v144, align 8
  %v153 = load <4 x double>, ptr %v145, align 8
  %v154 = load <4 x double>, ptr %v146, align 8
  %v155 = fadd <4 x double> %v147, %v132
  %v156 = fadd <4 x double> %v148, %v133
  %v157 = fadd <4 x double> %v149, %v134
  %v158 = fadd <4 x double> %v150, %v135
  %v159 = fadd <4 x double> %v151, %v136
  %v160 = fadd <4 x double> %v152, %v137
  %v161 = fadd <4 x double> %v153, %v138
  %v162 = fadd <4 x double> %v154, %v139
  %v163 = getelementptr double, ptr %a4, i64 4
  %v164 = getelementptr double, ptr %a4, i64 8
  %v165 = getelementptr double, ptr %a4, i64 12
  %v166 = getelementptr double, ptr %a4, i64 16
  %v167 = getelementptr double, ptr %a4, i64 20
  %v168 = getelementptr double, ptr %a4, i64 24
  %v169 = getelementptr double, ptr %a4, i64 28
  store <4 x double> %v155, ptr %a4, align 8
  store <4 x double> %v156, ptr %v163, align 8
  store <4 x double> %v157, ptr %v164, align 8
  store <4 x double> %v158, ptr %v165, align 8
  store <4 x double> %v159, ptr %v166, align 8
  store <4 x double> %v160, ptr %v167, align 8
  store <4 x double> %v161, ptr %v168, align 8
  store <4 x double> %v162, ptr %v169, align 8
  %v170 = getelementptr float, ptr %a3, i64 8
  %v171 = getelementptr float, ptr %a3, i64 16
  %v172 = getelementptr float, ptr %a3, i64 24
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %a3, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v170, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v171, align 4
  store <8 x float> <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>, ptr %v172, align 4
  %v173 = getelementptr double, ptr %a4, i64 4
  %v174 = getelementptr double, ptr %a4, i64 8
  %v175 = getelementptr double, ptr %a4, i64 12
  %v176 = getelementptr double, ptr %a4, i64 16
  %v177 = getelementptr double, ptr %a4, i64 20
  %v178 = getelementptr double, ptr %a4, i64 24
  %v179 = getelementptr double, ptr %a4, i64 28
  %v180 = load <4 x double>, ptr %a4, align 8
  %v181 = load <4 x double>, ptr %v173, align 8
  %v182 = load <4 x double>, ptr %v174, align 8
  %v183 = load <4 x double>, ptr %v175, align 8
  %v184 = load <4 x double>, ptr %v176, align 8
  %v185 = load <4 x double>, ptr %v177, align 8
  %v186 = load <4 x double>, ptr %v178, align 8
  %v187 = load <4 x double>, ptr %v179, align 8
  %v188 = fadd <4 x double> %v180, %v184
  %v189 = fadd <4 x double> %v181, %v185
  %v190 = fadd <4 x double> %v182, %v186
  %v191 = fadd <4 x double> %v183, %v187
  %v192 = fadd <4 x double> %v188, %v190
  %v193 = fadd <4 x double> %v189, %v191
  %v194 = fadd <4 x double> %v192, %v193
  %v195 = shufflevector <4 x double> %v194, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %v196 = shufflevector <4 x double> %v194, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %v197 = fadd <2 x double> %v195, %v196
  %v198 = shufflevector <2 x double> %v197, <2 x double> poison, <1 x i32> <i32 0>
  %v199 = shufflevector <2 x double> %v197, <2 x double> poison, <1 x i32> <i32 1>
  %v200 = fadd <1 x double> %v198, %v199
  %v201 = extractelement <1 x double> %v200, i64 0
  %v202 = fptrunc double %v201 to float
  store float %v202, ptr %a2
  %v203 = load float, ptr %a2, align 4
  %v204 = getelementptr inbounds float, ptr %p1, i64 %i1
  store float %v203, ptr %v204, align 4
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  br label %head1
exit1:
  ret void
}
