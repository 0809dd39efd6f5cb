"""What can go wrong with documents and libraries.

GistreeError
├── DocumentError
│   ├── DocumentNotFound      no such file, or no such document in the library
│   ├── UnsupportedFormat     no parser reads it
│   ├── EmptyDocument         nothing to read in it
│   ├── PasswordNeeded        encrypted; none given, or a wrong one
│   ├── DocumentProtected     DRM: cannot be read at all
│   ├── DocumentTooLarge      past a limit (unpacked size, memory, time)
│   └── UnreadableDocument    damaged, or its parser failed
└── LibraryError
    ├── LibraryReadOnly       cannot be written
    ├── LibraryTooNew         made by a newer gistree
    ├── ChatNotFound          no such chat or turn of one in the library
    └── StorageFull           no space left
"""

from serving.errors import GistreeError


class DocumentError(GistreeError):
    """A document cannot be read."""


class DocumentNotFound(DocumentError):
    """There is no such file or document."""


class UnsupportedFormat(DocumentError):
    """No parser reads this kind of file."""


class EmptyDocument(DocumentError):
    """There is no text in it."""


class PasswordNeeded(DocumentError):
    """It is encrypted, and no password or a wrong one was given."""


class DocumentProtected(DocumentError):
    """It is locked by digital rights management."""


class DocumentTooLarge(DocumentError):
    """It is past a limit of size, memory or time."""


class UnreadableDocument(DocumentError):
    """It is damaged, or its parser failed on it."""


class LibraryError(GistreeError):
    """The library cannot do what was asked."""


class LibraryReadOnly(LibraryError):
    """The library cannot be written."""


class LibraryTooNew(LibraryError):
    """A newer gistree made this library."""


class ChatNotFound(LibraryError):
    """The library holds no such chat, or no such turn of it."""


class StorageFull(LibraryError):
    """No space is left where the library lies."""
