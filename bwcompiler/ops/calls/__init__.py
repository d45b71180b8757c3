"""Ops that call something: graphs, as loops and branches do (`region`, where to begin), functions with derivatives of the user's own
(`custom`), functions of Python (`callback`).
"""
