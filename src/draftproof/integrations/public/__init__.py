"""Public implementations as subjects: one thin adapter each, and the table of their names."""
