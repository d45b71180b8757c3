"""What bodies do besides computing with variables: they change objects and containers (`places`), and raise (`checks`)."""
