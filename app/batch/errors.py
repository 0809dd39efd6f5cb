"""What can go wrong with a batch as a whole; a row that fails does not stop it.

GistreeError
└── BatchError
    ├── BadQuestions      the question file cannot be used
    ├── BatchChanged      the output was made with other questions or settings
    ├── OutputNotWritable the output cannot be written
    └── ClusterFailed     no such cluster, or it cannot do the work
"""

from serving.errors import GistreeError


class BatchError(GistreeError):
    """A batch cannot run."""


class BadQuestions(BatchError):
    """The question file cannot be used."""


class BatchChanged(BatchError):
    """The output was made with other questions or settings."""


class OutputNotWritable(BatchError):
    """The output cannot be written."""


class ClusterFailed(BatchError):
    """There is no such cluster, or it cannot do the work; finished rows are kept."""
