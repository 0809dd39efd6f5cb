"""Which KV blocks attention reads: one policy a file."""
