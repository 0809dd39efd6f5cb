"""Finding and fitting: embed, search, fuse, prune, assemble in document order."""
