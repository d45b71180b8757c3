"""Elements in the order of their size: all of them (`sorting`, where to begin), or some of them (`order_statistics`)."""
