"""How likely short texts are as a reply, from what may come next after each of their beginnings.

A server that tells the log-probabilities of given tokens behind a prompt needs no more than that,
and takes the prompt from its prefix cache.
"""

from collections.abc import Mapping, Sequence

Tokens = tuple[int, ...]

MOST_WANTED = 128
"""Tokens that vLLM tells the log-probabilities of at a time."""
_MOST_BEGINNINGS = 24


def beginnings(options: Sequence[Tokens]) -> list[Tokens]:
    """After what the next token must be known: nothing first, then each proper beginning once."""
    return list(dict.fromkeys(option[:n] for option in options for n in range(len(option))))


def wanted(options: Sequence[Tokens]) -> list[int]:
    """The tokens whose log-probabilities are needed, once each."""
    return sorted({token for option in options for token in option})


def are_short(options: Sequence[Tokens]) -> bool:
    """Whether asking for next tokens takes few questions; else whole texts are scored."""
    return len(beginnings(options)) <= _MOST_BEGINNINGS and len(wanted(options)) <= MOST_WANTED


def log_probs(
    known: Mapping[Tokens, Mapping[int, float]], options: Sequence[Tokens]
) -> tuple[float, ...]:
    """Log-probability of each option.

    Args:
        known: By beginning, the log-probability of each token that may come next.
        options: Their tokens.

    Raises:
        KeyError: a token's is not known.
    """
    return tuple(sum(known[o[:n]][o[n]] for n in range(len(o))) for o in options)
