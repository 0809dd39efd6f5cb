"""What can go wrong while finding and fitting.

GistreeError
└── RetrievalError
    ├── BudgetTooSmall     not even one passage fits
    └── EmbedderMismatch   an index made by another embedder, where it cannot be rebuilt
"""

from serving.errors import GistreeError


class RetrievalError(GistreeError):
    """Something cannot be found or fitted."""


class BudgetTooSmall(RetrievalError):
    """Not even the shortest passage fits the token budget."""

    def __init__(self, budget_tokens: int, needed_tokens: int) -> None:
        super().__init__(
            f"the budget is {budget_tokens:,} tokens and the shortest passage needs "
            f"{needed_tokens:,}; raise budget_tokens to at least that"
        )
        self.budget_tokens = budget_tokens
        self.needed_tokens = needed_tokens


class EmbedderMismatch(RetrievalError):
    """The vectors at hand were made by another embedder."""
