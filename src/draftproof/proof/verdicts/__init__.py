"""Verdicts: findings, what they add up to, and what they resemble."""
