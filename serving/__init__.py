"""The language model behind one small protocol. Knows nothing of documents."""
