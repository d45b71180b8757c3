"""Indices of selections, and selections as indices: `items`, where to begin; positions along several axes (`crossed`); what is added at
positions (`accumulating`); the positions themselves, of what is true (`positions`).
"""
