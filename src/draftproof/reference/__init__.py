"""What is true: each rule in plain float64 NumPy, one equation of a paper per function.

Uniforms are explicit arguments. Everything fast is tested to equal this token for token.
"""
