"""One file a pruner; the file's name is the pruner's name."""
