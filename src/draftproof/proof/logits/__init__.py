"""Verifiers from logits under judgement: how they are called, and those of known worth."""
