"""Generators of random numbers in captured code: their seeds (`seeds`), what they draw with traced parameters (`draws`), and what they
draw as often as data decide (`streams`), from a state that the program carries (`states`).
"""
