"""The judge: is a verifier lossless? It knows a subject as a callable and never imports kernels."""
