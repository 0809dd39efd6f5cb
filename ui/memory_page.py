"""The page "Memory": a document in short, part by part, and as a tree."""

import streamlit as st

from app.library import Library
from app.types import Entry, GistMemory, MemoryTree, Node, place
from app.visits import Visit, visits
from ui.activity import activity
from ui.guard import guarded
from ui.here import here
from ui.safe import block, inline, label

_PART = 50  # gists shown at a time


@guarded
def page() -> None:
    """Shows it."""
    library = here().library
    st.title("Memory")
    activity(library, ("remember",))
    entries = {entry.id: entry for entry in library.list()}
    if not entries:
        st.info("The library is empty. Add documents on the page Library.")
        return
    chosen = st.selectbox(
        "Document", list(entries), format_func=lambda key: label(entries[key].title, max_chars=90)
    )
    if not st.toggle("Look at its memory", help="Loads the language model, whose gists these are."):
        st.caption(
            "A gist memory is the document in short, part by part; a tree of summaries stands "
            "above it. The readers gist and tree answer from them. They are made once and kept."
        )
        return
    _shown(library, entries[chosen])


def _shown(library: Library, entry: Entry) -> None:
    memories = library.memories
    with st.spinner("Looking at what is there …"):
        gists, tree = memories.kept_gists(entry.id), memories.kept_tree(entry.id)
        sizes = None if tree else memories.estimate(entry.id, tree=True)
    if sizes is not None:
        st.write(
            f"What is missing takes at most {sizes.calls:,} calls of the model, about "
            f"{sizes.prompt_tokens:,} tokens of prompts and at most {sizes.completion_tokens:,} of "
            "replies. It is made in the background, and what is finished is kept."
        )
        st.button("Make it", type="primary", on_click=_order, args=(library, entry))
    visit = _visited(library, entry) if gists or tree else None
    if gists is not None:
        st.caption(
            f"{len(gists.gists):,} parts; the gists leave out {gists.compression:.0f} % of the "
            "words"
        )
        _gists(library, gists, visit)
    if tree is not None:
        st.subheader("Tree")
        _tree(tree, visit)


def _visited(library: Library, entry: Entry) -> Visit | None:
    """The question whose way is lit, the latest unless another is chosen."""
    known = {visit.turn_id: visit for visit in visits(library, entry.id)}
    if not known:
        return None
    chosen = st.selectbox(
        "Light the way of a question",
        ["", *known],
        index=1,
        format_func=lambda key: label(known[key].question, max_chars=90) if key else "none",
    )
    return known.get(chosen)


def _order(library: Library, entry: Entry) -> None:
    library.jobs.order("remember", name=entry.title, document_id=entry.id)


def _gists(library: Library, memory: GistMemory, visit: Visit | None) -> None:
    """Gists beside the places that they stand for; those that a question opened are lit."""
    document = library.document(memory.document_id)
    count = -(-len(memory.gists) // _PART)
    part = st.pagination(count, key=f"gists-{memory.document_id}") if count > 1 else 1
    rows = []
    for gist in memory.gists[(part - 1) * _PART : part * _PART]:
        where = inline(str(place(document, gist.span)), kind="gt-muted")
        mark = "" if gist.by == "model" else inline(" (the document's own words)", kind="gt-muted")
        lit = visit is not None and visit.touches(gist.span)
        seen = inline(" visited", kind="gt-tag") if lit else ""
        rows.append(
            f'<div class="gt-part{" gt-lit" if lit else ""}"><div>{where}{mark}{seen}</div>'
            f"{block(gist.text)}</div>"
        )
    st.html("".join(rows))


def _tree(tree: MemoryTree, visit: Visit | None) -> None:
    """The tree as lists that open and close, without a script; the walked way is open and lit."""
    walked = _walked(tree, visit) if visit else set()

    def branch(node: Node) -> str:
        title = inline(f"{node.title}: " if node.title else "") + inline(node.text)
        if node.number in walked:
            title = f'<span class="gt-lit">{title}{inline(" visited", kind="gt-tag")}</span>'
        if not node.children:
            return f"<li>{title}</li>"
        inside = "".join(branch(child) for child in tree.children(node))
        opened = " open" if node is tree.root or node.number in walked else ""
        return f"<li><details{opened}><summary>{title}</summary><ul>{inside}</ul></details></li>"

    st.html(f"<ul>{branch(tree.root)}</ul>")


def _walked(tree: MemoryTree, visit: Visit) -> set[int]:
    """Nodes that were entered, and the leaves that were opened with all that stands above them.

    A tree that was made anew has other numbers: a node counts where it still spans the same.
    """
    walked = {
        node.number
        for node in tree.nodes
        if visit.nodes.get(node.number) == node.span
        or (not node.children and visit.touches(node.span))
    }
    for number in tuple(walked):
        above = tree.nodes[number].parent
        while above is not None:
            walked.add(above)
            above = tree.nodes[above].parent
    return walked
