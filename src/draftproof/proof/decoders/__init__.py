"""Decoders: subjects that draft by themselves, and write texts of many rounds."""
