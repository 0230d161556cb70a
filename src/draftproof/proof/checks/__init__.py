"""The checks: each one looks at a subject in its own way and yields findings."""
