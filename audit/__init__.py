"""The audit: public implementations of speculative decoding, each judged in its own environment."""
