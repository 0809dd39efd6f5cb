"""One file a reader; the file's name is the reader's name."""
