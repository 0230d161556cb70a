"""Sampled evidence: many texts, their tallies, and what the counts can say."""
