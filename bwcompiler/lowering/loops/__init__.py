"""Fused groups -> loop trees, and what is done to loop trees before they become text."""
