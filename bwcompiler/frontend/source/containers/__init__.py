"""Objects and containers that bodies bind anew, taken apart into variables: begin with `parts`.  `copying`: copies of them; `queues`: lists
that give items away; `progressions`: ranges of which data decide.
"""
