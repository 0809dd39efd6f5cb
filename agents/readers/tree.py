"""Walking a memory tree (MemWalker, arXiv:2310.05029): down to where the answer is, and back."""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.answer import place
from agents.answering import MAX_QUESTION_CHARS, Answering, Basis
from agents.desk import Desk
from agents.passages import gather
from agents.prompting import fenced, render
from agents.remembering import found, tree_of
from agents.steps import Degraded, Step, Walked
from memory.tree import MemoryTree, Node
from retrieval.errors import BudgetTooSmall
from retrieval.types import Passage
from serving.asking import ask, field, pick, says_yes
from serving.errors import BadReply
from serving.model import Usage

__all__ = ["TreeReader"]

_KNOWN_SHARE = 0.25  # of the budget, for what is known from the way
_REASON_TOKENS = 120
_WALK = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "part": {"type": "integer"}},
    "required": ["reason", "part"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Where to go from a node.

    Attributes:
        order: Its children, the most promising first; empty to turn back.
        usage: What choosing cost.
        why: The model's reason.
        failed: Why its reply could not be used, empty where it could.
    """

    order: tuple[Node, ...]
    usage: Usage = Usage()
    why: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class TreeReader:
    """Goes from the root to the leaves that promise most, and turns back from those that do not.

    The way is a depth-first walk: at each node the children are ranked, the best is entered, and
    the next best is where the walk goes on when it turns back. No leaf is read twice. The short
    versions of the nodes on the way to useful leaves are the working memory: they stand before
    the answer's prompt. Where no leaf helps, the answer comes from what the search found.

    Attributes:
        max_steps: Most nodes that are entered in a document, leaves included.
        max_leaves: The walk ends with so many useful leaves.
        prior: Weight of what the search found beside the model's choice, for a model that chooses
            by log-probability.
        max_documents: How many documents are walked through.
        max_calls: Most calls for a document's memory within a question; a longer one is made
            beforehand (``gistree memory``), else its own sentences stand in for gists.
        top_k: How many passages the search gives.
    """

    max_steps: int = 14
    max_leaves: int = 2
    prior: float = 2.0
    max_documents: int = 2
    max_calls: int = 24
    top_k: int = 12

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Building…, Walked…, Assembled, Drafting…, Verified, Answer."""
        answering = Answering("tree", time.perf_counter())
        passages, chosen = yield from found(
            desk, question, top_k=self.top_k, most=self.max_documents
        )
        useful: list[tuple[MemoryTree, Node, float]] = []
        seen: list[Passage] = []
        usage = Usage()
        for key in chosen:
            tree, spent = yield from tree_of(desk, key, self.max_calls)
            usage += spent
            walk = _Walk(self, desk, question, tree, passages)
            yield from walk.go()
            usage += walk.usage
            useful += [(tree, node, score) for node, score in walk.useful]
            seen += walk.seen
        nearest = passages or seen
        if useful:
            basis = yield from _basis(desk, question, useful, nearest)
        elif nearest:
            # A small model says no to parts that hold the answer; the answer's own prompt, and
            # what checks it, tell better whether there is one.
            yield Degraded("answers from what the search found", "no part that was read helps")
            basis = yield from gather(desk, question, nearest)
        else:
            yield answering.not_found(desk, Basis("", (), ()), usage)
            return
        yield from answering.answer(desk, question, basis, usage)


class _Walk:
    """One walk through one tree.

    Attributes:
        useful: Leaves that hold something of the answer, and how sure that is.
        seen: Leaves that were read, as passages.
        usage: Tokens spent.
    """

    def __init__(
        self,
        reader: TreeReader,
        desk: Desk,
        question: str,
        tree: MemoryTree,
        passages: Sequence[Passage],
    ) -> None:
        self._reader, self._desk, self._tree = reader, desk, tree
        self._question = question[:MAX_QUESTION_CHARS]
        found = [p for p in passages if p.document_id == tree.document_id]
        self._found = sorted(found, key=lambda passage: -passage.score)
        self._best = self._found[0].score if self._found else 0.0
        self.useful: list[tuple[Node, float]] = []
        self.seen: list[Passage] = []
        self.usage = Usage()

    def go(self) -> Iterator[Step]:
        """The steps of the walk."""
        steps = 0
        rest = [(self._tree.root, "")]  # what is still to be entered, the next one last
        while rest and steps < self._reader.max_steps:
            node, why = rest.pop()
            steps += 1
            if not node.children:
                yield from self._read(node, why)
                if len(self.useful) == self._reader.max_leaves:
                    yield self._walked(node, "stop", "enough is found")
                    return
                continue
            children = self._tree.children(node)
            choice = self._choose(node, children)
            self.usage += choice.usage
            if choice.failed:
                yield Degraded("goes where the search points", choice.failed)
            action = "down" if choice.order else "up"
            yield self._walked(node, action, choice.why or why, choice.usage)
            rest += [(child, "") for child in reversed(choice.order)]
        if rest:
            yield self._walked(self._tree.root, "stop", f"after {steps} steps")

    def _walked(self, node: Node, action: Any, why: str, usage: Usage = Usage()) -> Walked:
        where = place(self._desk.document(self._tree.document_id), node.span)
        return Walked(where, node.number, node.level, action, why, usage)

    def _read(self, node: Node, why: str) -> Iterator[Step]:
        """Reads a leaf and judges it; the search's word counts where the model gives none."""
        text = node.span.of(self._desk.document(self._tree.document_id).text)
        messages = render("tree-leaf", part=fenced(text), question=self._question)
        judged = says_yes(self._desk.model, messages)
        self.usage += judged.usage
        found = self._prior(node)
        sure = judged.value if judged.value is not None else found
        if judged.value is None:
            yield Degraded("judges a part as the search does", judged.why)
        score = sure + found
        self.seen.append(Passage(node.number, self._tree.document_id, node.span, score))
        holds = sure >= 0.5
        yield self._walked(node, "read", "it helps" if holds else "it does not help", judged.usage)
        if holds:
            self.useful.append((node, score))

    def _choose(self, node: Node, children: Sequence[Node]) -> Choice:
        listed = "\n".join(
            f"[{number}] {child.title + ': ' if child.title else ''}{child.text}"
            for number, child in enumerate(children, 1)
        )
        if len(children) == 1:
            return Choice(tuple(children))
        if self._desk.model.ability == "large":
            return self._reasoned(node, children, listed)
        picked = pick(
            self._desk.model,
            render("tree-child", parts=fenced(listed), question=self._question),
            [str(number) for number in range(1, len(children) + 1)],
        )
        scores = [self._reader.prior * self._prior(child) for child in children]
        if picked.value is not None:
            scores = [a + b for a, b in zip(scores, picked.value, strict=True)]
        order = sorted(range(len(children)), key=lambda i: -scores[i])
        return Choice(tuple(children[i] for i in order), picked.usage, failed=picked.why)

    def _reasoned(self, node: Node, children: Sequence[Node], listed: str) -> Choice:
        def read(reply: Any) -> tuple[int, str]:
            number = field(reply, "part", int)
            if not 0 <= number <= len(children):
                raise BadReply(f"the parts are numbered 1 to {len(children)}; 0 turns back")
            return number, field(reply, "reason", str)

        known = "\n".join(step.text for step in self._tree.path(node))
        asked = ask(
            self._desk.model,
            render("tree-walk", known=fenced(known), parts=fenced(listed), question=self._question),
            schema=_WALK,
            read=read,
            max_tokens=_REASON_TOKENS,
        )
        by_search = sorted(children, key=lambda child: (-self._prior(child), child.number))
        if asked.value is None:
            return Choice(tuple(by_search), asked.usage, failed=asked.why)
        number, reason = asked.value
        if not number:
            return Choice((), asked.usage, reason)
        first = children[number - 1]
        rest = [child for child in by_search if child is not first]
        return Choice((first, *rest), asked.usage, reason)

    def _prior(self, node: Node) -> float:
        """How well the search found what a node spans, 0 to 1."""
        for passage in self._found:
            if passage.span.start < node.span.end and node.span.start < passage.span.end:
                return passage.score / self._best if self._best > 0 else 0.0
        return 0.0


def _basis(
    desk: Desk,
    question: str,
    useful: Sequence[tuple[MemoryTree, Node, float]],
    nearest: Sequence[Passage],
) -> Generator[Step, None, Basis]:
    """What is known from the way, then the useful leaves, within the budget."""
    known: list[str] = []
    room = desk.budget_tokens * _KNOWN_SHARE
    for tree, leaf, _ in useful:
        for node in tree.path(leaf)[:-1]:
            room -= desk.model.count_tokens(node.text) + 2
            if room >= 0 and node.text not in known:
                known.append(node.text)
    head = "\n".join(["[Known from the contents]", *(f"- {text}" for text in known)])
    left = desk.budget_tokens - (desk.model.count_tokens(head) if known else 0)
    leaves = [
        Passage(node.number, tree.document_id, node.span, score) for tree, node, score in useful
    ]
    leaves.sort(key=lambda passage: -passage.score)
    try:
        basis = yield from gather(replace(desk, budget_tokens=left), question, leaves)
    except BudgetTooSmall:
        basis = yield from gather(desk, question, leaves)
        known = []
    text = f"{head}\n\n{basis.text}" if known else basis.text
    return Basis(text, basis.spans, nearest)
