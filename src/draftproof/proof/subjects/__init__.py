"""Subjects: the verifier under judgement, loaded, called and read in one way."""
