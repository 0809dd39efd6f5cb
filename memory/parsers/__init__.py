"""One file a format; the file's name is the parser's name."""
