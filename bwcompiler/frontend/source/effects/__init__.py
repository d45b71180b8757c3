"""Side effects of bodies: changes of objects and containers (`places`), exceptions and messages (`checks`)."""
