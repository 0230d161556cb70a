"""What is fast: the reference's rules, equal to it token for token for the same uniforms.

One file for each operation and backend; the suffix is the backend, the signature is the same.
Inputs are trusted: the public functions validate shapes and dtypes.
"""
