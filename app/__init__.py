"""Composition: settings, the library, the command line."""
