"""One file a way to reach a language model."""
