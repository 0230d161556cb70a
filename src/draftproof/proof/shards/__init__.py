"""Shards: one verdict's sampling, spread over processes or machines, and put together again."""
