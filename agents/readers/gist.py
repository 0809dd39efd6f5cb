"""Gist memory with look-ups (ReadAgent, arXiv:2402.09727): all in short, some parts in full."""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from agents.answer import place
from agents.answering import MAX_QUESTION_CHARS, Answering, Basis
from agents.desk import Desk
from agents.passages import gather
from agents.prompting import fenced, render
from agents.remembering import found, gists_of
from agents.steps import Assembled, Degraded, LookedUp, Pruned, Step
from memory.document import Span
from memory.gists import Gist
from retrieval.assemble import short_title
from retrieval.errors import BudgetTooSmall
from retrieval.types import Passage
from serving.asking import ask, field, says_yes
from serving.errors import BadReply
from serving.model import Message, Usage

__all__ = ["GistReader"]

_GIST_SHARE = 0.5  # of the budget, for gists; the rest is for what is looked up
_WINDOW_SHARE = 0.5  # of the window, for the gists that a large model looks up from
_REPLY_TOKENS = 60
_PARTS = {
    "type": "object",
    "properties": {"parts": {"type": "array", "items": {"type": "integer"}}},
    "required": ["parts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Page:
    """An episode of a document and its gist: what ReadAgent calls a page."""

    document_id: str
    gist: Gist
    score: float

    @property
    def passage(self) -> Passage:
        """The episode as something to read."""
        return Passage(self.gist.number, self.document_id, self.gist.span, self.score)


@dataclass(frozen=True, slots=True)
class GistReader:
    """Reads every gist, then looks parts up, and answers from both.

    A large model says which parts; a small one is better at confirming what the search proposes,
    part by part. The answer's prompt has the gists in document order with the looked-up parts in
    their place. Where not all gists fit half the budget, those nearest to what was found are kept.
    A large model looks up from all gists that half its window holds: that prompt begins alike for
    every question about the same documents, and a prefix cache finds it.

    Attributes:
        max_lookups: Most parts that are looked up.
        sequential: Look up one part at a time, and stop when what is open will do.
        max_documents: Of how many documents gists are made.
        max_calls: Most calls for a document's memory within a question; a longer one is made
            beforehand (``gistree memory``), else its own sentences stand in for gists.
        top_k: How many passages the search gives.
    """

    max_lookups: int = 3
    sequential: bool = False
    max_documents: int = 3
    max_calls: int = 24
    top_k: int = 12

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Building…, LookedUp (or Degraded), Assembled, Drafting…, Verified, Answer."""
        answering = Answering("gist", time.perf_counter())
        passages, chosen = yield from found(
            desk, question, top_k=self.top_k, most=self.max_documents
        )
        pages: list[Page] = []
        usage = Usage()
        for key in chosen:
            memory, spent = yield from gists_of(desk, key, self.max_calls)
            usage += spent
            pages += [Page(key, gist, _score(key, gist, passages)) for gist in memory.gists]
        if not pages:
            yield answering.not_found(desk, Basis("", (), passages), usage)
            return
        whole = _WINDOW_SHARE * desk.model.context_window
        opened, spent = yield from self._look_up(desk, question, _fitting(desk, pages, whole))
        usage += spent
        shown = _fitting(desk, pages, _GIST_SHARE * desk.budget_tokens, opened)
        basis = yield from _basis(desk, question, shown, opened, passages)
        yield from answering.answer(desk, question, basis, usage)

    def opening(self, desk: Desk) -> list[Message] | None:
        """What a large model looks up from, where all gists are kept and fit; see ``Opening``."""
        few = len(desk.documents) <= self.max_documents
        if desk.model.ability != "large" or not few:
            return None
        pages: list[Page] = []
        for key in desk.documents:
            memory = desk.memories.kept_gists(key)
            if memory is None:
                return None
            pages += [Page(key, gist, 0.0) for gist in memory.gists]
        if len(_fitting(desk, pages, _WINDOW_SHARE * desk.model.context_window)) < len(pages):
            return None  # then the question decides which ones are shown
        return _lookup_prompt(desk, pages, "", (), self.max_lookups)

    def _look_up(
        self, desk: Desk, question: str, shown: Sequence[Page]
    ) -> Generator[Step, None, tuple[list[Page], Usage]]:
        """The parts that are read in full, in document order, and what choosing them cost."""
        opened: list[Page] = []
        usage = Usage()
        while len(opened) < self.max_lookups:
            most = 1 if self.sequential else self.max_lookups - len(opened)
            choose = _named if desk.model.ability == "large" else _confirmed
            more, spent, why = choose(desk, question, shown, opened, most)
            usage += spent
            if why:
                yield Degraded("looks up what the search found", why)
            if not more:
                if spent.calls:
                    yield LookedUp((), "nothing more", spent)
                break
            places = tuple(place(desk.document(p.document_id), p.gist.span) for p in more)
            yield LookedUp(places, usage=spent)
            opened += more
            if not self.sequential or len(opened) == self.max_lookups:
                break
            enough, spent = _enough(desk, question, opened)
            usage += spent
            yield LookedUp((), "what is open will do" if enough else "more is needed", spent)
            if enough:
                break
        return sorted(opened, key=shown.index), usage


def _named(
    desk: Desk, question: str, shown: Sequence[Page], opened: Sequence[Page], most: int
) -> tuple[list[Page], Usage, str]:
    """The parts that a large model names; the search's where it names none that are there."""

    def read(reply: Any) -> list[Page]:
        numbers = field(reply, "parts", list)
        if not all(isinstance(n, int) and 1 <= n <= len(shown) for n in numbers):
            raise BadReply(f"the parts are numbered 1 to {len(shown)}")
        return [shown[n - 1] for n in dict.fromkeys(numbers)]

    asked = ask(
        desk.model,
        _lookup_prompt(desk, shown, question, opened, most),
        schema=_PARTS,
        read=read,
        max_tokens=_REPLY_TOKENS,
    )
    if asked.value is None:
        return _best(shown, opened)[:most], asked.usage, asked.why
    return [page for page in asked.value if page not in opened][:most], asked.usage, ""


def _lookup_prompt(
    desk: Desk, shown: Sequence[Page], question: str, opened: Sequence[Page], most: int
) -> list[Message]:
    return render(
        "gist-lookup",
        gists=fenced(_listed(desk, shown, {})),
        question=question[:MAX_QUESTION_CHARS],
        opened=", ".join(str(shown.index(page) + 1) for page in opened) or "none",
        most=str(most),
    )


def _confirmed(
    desk: Desk, question: str, shown: Sequence[Page], opened: Sequence[Page], most: int
) -> tuple[list[Page], Usage, str]:
    """The parts that the search proposes, in the order in which the model says yes to their gists.

    The best of the search is opened whatever the model says: the search is better at choosing.
    """
    proposed = _best(shown, opened)[: 2 * most]
    if len(proposed) <= most:
        return proposed, Usage(), ""
    usage = Usage()
    odds: dict[Page, float] = {}
    for page in proposed[1:]:
        messages = render(
            "gist-part", gist=fenced(page.gist.text), question=question[:MAX_QUESTION_CHARS]
        )
        judged = says_yes(desk.model, messages)
        usage += judged.usage
        if judged.value is None:
            return proposed[:most], usage, judged.why
        odds[page] = judged.value
    ranked = sorted(odds, key=lambda page: -odds[page])
    return [proposed[0], *ranked[: most - 1]], usage, ""


def _enough(desk: Desk, question: str, opened: Sequence[Page]) -> tuple[bool, Usage]:
    parts = "\n\n".join(p.gist.span.of(desk.document(p.document_id).text) for p in opened)
    messages = render("gist-enough", parts=fenced(parts), question=question[:MAX_QUESTION_CHARS])
    judged = says_yes(desk.model, messages)
    return judged.value is not None and judged.value >= 0.5, judged.usage


def _best(shown: Sequence[Page], opened: Sequence[Page]) -> list[Page]:
    """What the search found, the best first, without what is open."""
    return sorted((p for p in shown if p.score and p not in opened), key=lambda page: -page.score)


def _score(key: str, gist: Gist, passages: Sequence[Passage]) -> float:
    """How well the search found an episode: as its best passage."""
    return max(
        (
            passage.score
            for passage in passages
            if passage.document_id == key
            and passage.span.start < gist.span.end
            and gist.span.start < passage.span.end
        ),
        default=0.0,
    )


def _fitting(
    desk: Desk, pages: Sequence[Page], room: float, opened: Sequence[Page] = ()
) -> list[Page]:
    """The parts whose gists fit, in document order: opened ones, then found ones and neighbours.

    Where all fit they are the same whatever was asked, so that a prompt over them begins alike.
    """
    near = [
        max((p.score for p in pages[max(0, i - 1) : i + 2]), default=0.0) + page.score
        for i, page in enumerate(pages)
    ]
    kept: set[int] = set()
    for i in sorted(range(len(pages)), key=lambda i: (pages[i] not in opened, -near[i], i)):
        room -= desk.model.count_tokens(pages[i].gist.text) + 4
        if room < 0 and kept and pages[i] not in opened:
            break
        kept.add(i)
    return [page for i, page in enumerate(pages) if i in kept]


def _listed(desk: Desk, shown: Sequence[Page], texts: dict[Page, str]) -> str:
    """Parts by number under their documents' titles; ``texts`` stand in place of gists."""
    lines: list[str] = []
    numbers = {page: number for number, page in enumerate(shown, 1)}
    for key, group in groupby(shown, key=lambda page: page.document_id):
        if len({page.document_id for page in shown}) > 1:
            lines.append(f"[{short_title(desk.document(key).title)}]")
        last = -1
        for page in group:
            if page.gist.number > last + 1:
                lines.append("[…]")
            last = page.gist.number
            lines.append(f"[{numbers[page]}] {texts.get(page, page.gist.text)}")
    return "\n".join(lines)


def _basis(
    desk: Desk,
    question: str,
    shown: Sequence[Page],
    opened: Sequence[Page],
    passages: Sequence[Passage],
) -> Generator[Step, None, Basis]:
    """Gists with the looked-up parts in their place, within the budget."""
    texts: dict[Page, str] = {}
    kept, dropped = 0, 0
    for page in sorted(opened, key=lambda page: -page.score):
        room = desk.budget_tokens - desk.model.count_tokens(_listed(desk, shown, texts))
        room += desk.model.count_tokens(page.gist.text)
        reading = gather(replace(desk, budget_tokens=max(1, room)), question, [page.passage])
        try:
            while True:
                step = next(reading)
                if isinstance(step, Pruned):
                    kept, dropped = kept + step.kept, dropped + step.dropped
        except StopIteration as end:
            part: Basis = end.value
        except BudgetTooSmall:
            continue  # its gist has to do
        if part.text:
            texts[page] = part.text
    if kept + dropped:
        yield Pruned(kept, dropped)
    text = _listed(desk, shown, texts)
    titles = tuple(dict.fromkeys(desk.document(page.document_id).title for page in shown))
    yield Assembled(
        desk.model.count_tokens(text),
        desk.budget_tokens,
        len(shown),
        len(opened) - len(texts),
        titles if len(desk.documents) > 1 else (),
    )
    spans: list[tuple[str, Span]] = [(page.document_id, page.gist.span) for page in shown]
    nearest = passages or [page.passage for page in shown[:3]]
    return Basis(text, spans, nearest)
