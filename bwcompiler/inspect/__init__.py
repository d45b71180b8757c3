"""Programs for people to look at: every stage as text, pages, drawings, costs, and `explain`."""
