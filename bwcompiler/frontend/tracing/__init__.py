"""Handles that record what is done to them: regions, storages, views, and `trace`."""
