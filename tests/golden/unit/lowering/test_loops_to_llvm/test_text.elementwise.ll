define internal void @k0(ptr noalias readonly %p0, ptr noalias readonly %p1, ptr noalias %p2) #1 {
entry:
  br label %pre1
pre1:
  br label %head1
head1:
  %i1 = phi i64 [ 0, %pre1 ], [ %n1, %latch1 ]
  %c1 = icmp slt i64 %i1, 3
  br i1 %c1, label %body1, label %exit1
body1:
  br label %pre2
pre2:
  br label %head2
head2:
  %i2 = phi i64 [ 0, %pre2 ], [ %n2, %latch2 ]
  %c2 = icmp slt i64 %i2, 40
  br i1 %c2, label %body2, label %exit2
body2:
  %v3 = mul nsw i64 %i1, 40
  %v4 = add nsw i64 %v3, %i2
  %v5 = getelementptr inbounds double, ptr %p0, i64 %v4
  %v6 = load double, ptr %v5, align 8
  %v7 = fmul double %v6, 0x4000000000000000
  %v8 = getelementptr inbounds i8, ptr %p1, i64 %i2
  %v9 = load i8, ptr %v8, align 1
  %v10 = icmp ne i8 %v9, 0
  br i1 %v10, label %then11, label %else11
then11:
  br label %left11
left11:
  br label %join11
else11:
  %v12 = add nsw i64 -1, %i2
  %v13 = icmp sge i64 %v12, 0
  %v14 = icmp slt i64 %v12, 39
  %v15 = and i1 %v13, %v14
  br i1 %v15, label %then16, label %else16
then16:
  %v17 = mul nsw i64 %i1, 40
  %v18 = add nsw i64 -1, %v17
  %v19 = add nsw i64 %v18, %i2
  %v20 = getelementptr inbounds double, ptr %p0, i64 %v19
  %v21 = load double, ptr %v20, align 8
  br label %left16
left16:
  br label %join16
else16:
  br label %right16
right16:
  br label %join16
join16:
  %v22 = phi double [ %v21, %left16 ], [ 0x0000000000000000, %right16 ]
  br label %right11
right11:
  br label %join11
join11:
  %v23 = phi double [ %v7, %left11 ], [ %v22, %right11 ]
  %v24 = getelementptr inbounds double, ptr %p2, i64 %v4
  store double %v23, ptr %v24, align 8
  br label %latch2
latch2:
  %n2 = add nuw nsw i64 %i2, 1
  br label %head2, !llvm.loop !2
exit2:
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  br label %head1
exit1:
  ret void
}
