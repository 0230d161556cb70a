"""Exact evidence: whole laws, by intervals, by replay and by bisection."""
