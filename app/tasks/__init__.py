"""What can be done in the background; a task is one file."""
