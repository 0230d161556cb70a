"""Verifiers of trees under judgement: how they are called, and those of known worth."""
