"""The long run: a billion texts of the native verifier, in shards, and one verdict of them all."""
