define internal void @k0(ptr noalias readonly %p0, ptr noalias readonly %p1, ptr noalias %p2) #1 {
entry:
  br label %pre1
pre1:
  br label %head1
head1:
  %i1 = phi i64 [ 0, %pre1 ], [ %n1, %latch1 ]
  %c1 = icmp slt i64 %i1, 4
  br i1 %c1, label %body1, label %exit1
body1:
  br label %pre2
pre2:
  br label %head2
head2:
  %i2 = phi i64 [ 0, %pre2 ], [ %n2, %latch2 ]
  %c2 = icmp slt i64 %i2, 3
  br i1 %c2, label %body2, label %exit2
body2:
  %v3 = mul nsw i64 %i1, 3
  %v4 = add nsw i64 %v3, %i2
  %v5 = getelementptr inbounds double, ptr %p0, i64 %v4
  %v6 = load double, ptr %v5, align 8
  %v7 = getelementptr inbounds i64, ptr %p1, i64 %i1
  %v8 = load i64, ptr %v7, align 8
  %v9 = mul i64 %v8, 3
  %v10 = add i64 %i2, %v9
  %v11 = getelementptr inbounds double, ptr %p2, i64 %v10
  %v12 = load double, ptr %v11, align 8
  %v13 = fadd double %v12, %v6
  store double %v13, ptr %v11, align 8
  br label %latch2
latch2:
  %n2 = add nuw nsw i64 %i2, 1
  br label %head2
exit2:
  br label %latch1
latch1:
  %n1 = add nuw nsw i64 %i1, 1
  br label %head1
exit1:
  ret void
}
