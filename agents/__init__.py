"""Readers: each turns a question into a stream of steps that ends in an answer."""
