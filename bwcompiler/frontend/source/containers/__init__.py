"""Objects and containers that bodies create anew, split into variables: begin with `parts`.  `copying`: copies of them; `queues`: lists
from which items are removed; `progressions`: ranges that depend on data; `selections`: what data select.
"""
