"""From passages to a checked answer: the end that all readers share.

The model writes the answer; the program finds what bears it out. A citation is always a place in
the source, an answer that nothing bears out becomes "not found", and both are told as steps.
"""

import re
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agents.answer import Answer, Citation, Claim, cite
from agents.attribution import leave_out, weed
from agents.confirming import Confirmer
from agents.desk import Desk
from agents.ensemble import Ensemble
from agents.prompting import fenced, render
from agents.question_kind import kind_of
from agents.quotes import locate
from agents.steps import Confirmed, Degraded, Drafted, Drafting, Step, Verified, Weighed
from agents.support import Evidence, Supporter
from memory.document import Span
from memory.sentences import sentences
from retrieval.types import Passage
from serving.model import Ability, Completion, Message, Usage

MAX_QUESTION_CHARS = 4_000
"""What of a question goes into a prompt; searching bounds its query by itself."""

_REFUSAL = re.compile(
    r"\W*not[ _]found\b"
    r"|\W*(?:the|these|this)? ?(?:given |provided )?(?:passages?|documents?|text|context)"
    r" (?:do|does|did)(?: not|n['’]t) (?:\w+ )?(?:hold|contain|mention|say|provide|state|specify)"
    r"|\W*(?:(?:the |an )?answer|it|this) (?:is|was)(?: not|n['’]t)"
    r" (?:found|stated|mentioned|given|provided|specified)\b"
    r"|\W*there is no (?:mention|information)\b"
    r"|\W*unknown\W*$",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"\(?\d{1,3}[.)]")
_QUOTED = re.compile(r"[“\"]([^“”\"]{15,})[”\"]")
_MAX_CITATIONS = 6
_PLACES_OF_THE_WHOLE = 4
_MAX_NEAREST = 3


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer is made from.

    Attributes:
        text: The passages as the prompt shows them, within the budget.
        spans: The places that may be cited, as (document id, span).
        nearest: What was found, the best first; shown where the answer is not found.
        other_orders: ``text`` with its passages in other orders, for a vote.
    """

    text: str
    spans: Sequence[tuple[str, Span]]
    nearest: Sequence[Passage]
    other_orders: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answering:
    """Drafts an answer and checks it.

    Attributes:
        reader: Name of the reader, for the record.
        started: ``time.perf_counter()`` at the question.
        max_tokens: Most tokens of the reply; 0 takes what suits the model.
        ensemble: Makes the draft in another way than by one plain reply.
        supporter: Finds what bears a sentence out.
        confirmer: Asks the model whether the answer is stated in what it read.
        leave_out: Whether each citation is left out once, to rank and weed them.
    """

    reader: str
    started: float
    max_tokens: int = 0
    ensemble: Ensemble = field(default_factory=Ensemble)
    supporter: Supporter = field(default_factory=Supporter)
    confirmer: Confirmer = field(default_factory=Confirmer)
    leave_out: bool = False

    def answer(
        self, desk: Desk, question: str, basis: Basis, spent: Usage = Usage()
    ) -> Iterator[Step]:
        """The steps from the prompt to the answer.

        Args:
            desk: What lies before the reader.
            question: As it was asked.
            basis: What the answer is made from.
            spent: Tokens that the reader's calls before this one took; the answer counts them.
        """
        completion = yield from self.ensemble.draft(desk, question, basis, self._draft)
        usage = spent + completion.usage
        draft = completion.text.strip()
        yield Drafted(draft, completion.usage)
        if not draft or _REFUSAL.match(draft):
            yield Verified(0, (), ())
            yield self.not_found(desk, basis, usage)
            return
        evidence = _evidence(desk, basis)
        citations, claims = self._attribute(desk, question, draft, evidence)
        unsupported = tuple(c.span.of(draft).strip() for c in claims if not c.citations)
        invented = tuple(
            quote
            for quote in _QUOTED.findall(draft)
            if not any(locate(quote, desk.document(key).text) for key, _ in basis.spans)
        )
        yield Verified(len(citations), invented, unsupported)
        if not citations:
            yield self.not_found(desk, basis, usage)
            return
        confirmation = self.confirmer.confirm(
            desk.model,
            question[:MAX_QUESTION_CHARS],
            basis.text,
            support=max(citation.score for citation in citations),
        )
        if confirmation is not None:
            usage += confirmation.usage
            yield Confirmed(
                confirmation.stands,
                confirmation.sureness,
                confirmation.least,
                confirmation.usage,
            )
            if not confirmation.stands:
                yield self.not_found(desk, basis, usage)
                return
        if self.leave_out:
            falls = leave_out(
                desk.model, lambda text: _prompt(desk, text, question), basis.text, draft, citations
            )
            usage += falls.usage
            if falls.why:
                yield Degraded("citations are ranked by words and meaning alone", falls.why)
            else:
                citations, claims = weed(citations, claims, falls.falls)
                yield Weighed(falls.falls, len(citations))
        yield Answer(
            text=draft,
            citations=citations,
            found=True,
            usage=usage,
            reader=self.reader,
            model=desk.model.name,
            seconds=time.perf_counter() - self.started,
            unsupported=(*unsupported, *invented),
            claims=claims,
        )

    def not_found(self, desk: Desk, basis: Basis, usage: Usage = Usage()) -> Answer:
        """The answer where the documents do not hold one, with the passages nearest to it."""
        nearest = [
            cite(desk.document(p.document_id), p.span, p.score)
            for p in basis.nearest[:_MAX_NEAREST]
        ]
        which = "this document" if len(desk.documents) == 1 else "these documents"
        return Answer(
            text=f"Not found in {which}.",
            citations=(),
            found=False,
            nearest=tuple(nearest),
            usage=usage,
            reader=self.reader,
            model=desk.model.name,
            seconds=time.perf_counter() - self.started,
        )

    def _draft(self, desk: Desk, question: str, basis: Basis) -> Generator[Step, None, Completion]:
        stream = desk.model.stream(
            _prompt(desk, basis.text, question),
            max_tokens=self.max_tokens or _usual_tokens(desk.model.ability, question),
        )
        try:
            while True:
                yield Drafting(next(stream))
        except StopIteration as end:
            completion: Completion = end.value
            return completion
        finally:
            stream.close()

    def _attribute(
        self, desk: Desk, question: str, draft: str, evidence: Sequence[Evidence]
    ) -> tuple[tuple[Citation, ...], tuple[Claim, ...]]:
        """The best places for the sentences of the draft, and which sentence has which.

        Each sentence keeps its own best place, however many citations that makes.
        """
        supporter = self.supporter
        if kind_of(question)[0] in ("summarise", "count", "list", "compare"):
            # Its sentences draw on more places than one that states a fact does.
            supporter = replace(supporter, max_each=max(supporter.max_each, _PLACES_OF_THE_WHOLE))
        scores: dict[tuple[str, Span], float] = {}
        firsts: set[tuple[str, Span]] = set()
        places: list[tuple[Span, list[tuple[str, Span]]]] = []
        said = sentences(draft)
        for sentence in said:
            claim = sentence.of(draft)
            if not any(character.isalnum() for character in claim):
                continue
            if len(said) > 1 and _LIST_MARK.fullmatch(claim):
                continue
            found = supporter.support(question, claim, evidence, desk.embedder)
            keys = [(piece.document_id, piece.span) for piece, _ in found]
            for key, (_, score) in zip(keys, found, strict=True):
                scores[key] = max(score, scores.get(key, 0.0))
            firsts.update(keys[:1])
            places.append((sentence, keys))
        ranked = sorted(scores, key=lambda key: -scores[key])
        room = max(_MAX_CITATIONS - len(firsts), 0)
        kept = firsts | set([key for key in ranked if key not in firsts][:room])
        ranked = [key for key in ranked if key in kept]
        citations = tuple(cite(desk.document(key[0]), key[1], scores[key]) for key in ranked)
        claims = tuple(
            Claim(sentence, tuple(ranked.index(key) for key in keys if key in kept))
            for sentence, keys in places
        )
        return citations, claims


def opening(desk: Desk, passages: str) -> list[Message]:
    """A prompt that begins as those of all questions to these passages do, up to the question."""
    return _prompt(desk, passages, "")


def _prompt(desk: Desk, passages: str, question: str) -> list[Message]:
    return render(
        _template(desk.model.ability, question),
        passages=fenced(passages),
        question=question[:MAX_QUESTION_CHARS],
    )


def _template(ability: Ability, question: str) -> str:
    if ability == "large":
        return "answer-large"
    several = kind_of(question)[0] in ("summarise", "compare")
    return "answer-small-whole" if several else "answer-small"


def _usual_tokens(ability: Ability, question: str) -> int:
    if ability == "large":
        return 600
    return 96 if kind_of(question)[0] in ("look-up", "multi-hop", "count") else 240


def _evidence(desk: Desk, basis: Basis) -> list[Evidence]:
    """The sentences that may be cited."""
    found: dict[tuple[str, Span], Evidence] = {}
    for key, place in basis.spans:
        text = place.of(desk.document(key).text)
        for sentence in sentences(text):
            quote = sentence.of(text)
            left = len(quote) - len(quote.lstrip())
            span = Span(
                place.start + sentence.start + left,
                place.start + sentence.start + max(left, len(quote.rstrip())),
            )
            if any(character.isalnum() for character in quote):
                found[key, span] = Evidence(key, span, quote.strip())
    return list(found.values())
