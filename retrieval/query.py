"""What of a query is looked for: not the instruction that stands before a colon."""

import re

_COLON = re.compile(r"[:：]\s+|：")
_QUOTED = re.compile(r"[\"“„«「『]\s*(\w[^\"”“»」』]*)[\"”“»」』]")
_HEAD_WORDS, _TAIL_WORDS = 4, 5  # less is a title's first half, or leans on what stands before


def core(query: str) -> str:
    """The part of a query whose meaning passages are compared with.

    Of "Highlight the parts of this contract related to "Insurance". Details: Is there a requirement
    for …?" that is the name in quotation marks and the question after the colon. A sentence vector
    mixes all that it is given, so that the instruction would draw it to passages about highlighting
    and contracts; word search needs no such help, because words that stand everywhere weigh little.

    Args:
        query: As it was asked.

    Returns:
        The whole query where no instruction of some length stands before a colon.
    """
    for colon in reversed(list(_COLON.finditer(query))):
        head, tail = query[: colon.start()], query[colon.end() :]
        if len(tail.split()) < _TAIL_WORDS:
            continue
        named = _QUOTED.findall(head)
        outside = _QUOTED.sub(" ", head)
        if len(head.split()) < _HEAD_WORDS or re.search(r"[\"“„«「『]", outside):
            return query  # the colon stands within a title, perhaps a quoted one
        return " ".join([*named, tail])
    return query
