"""Worlds: targets and drafters whose laws are known exactly."""
