"""How an agent decides what to look at; one file a loop, the file's name is the loop's name."""
