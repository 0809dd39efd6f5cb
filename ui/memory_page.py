"""The page "Memory": a document in short, part by part, and as a tree."""

import streamlit as st

from app.library import Library
from app.service import service
from app.types import Entry, GistMemory, MemoryTree, Node, place
from ui.activity import activity
from ui.guard import guarded
from ui.safe import block, inline, label

_PART = 50  # gists shown at a time


@guarded
def page() -> None:
    """Shows it."""
    library = service().library
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
    if gists is not None:
        st.caption(
            f"{len(gists.gists):,} parts; the gists leave out {gists.compression:.0f} % of the "
            "words"
        )
        _gists(library, gists)
    if tree is not None:
        st.subheader("Tree")
        _tree(tree)


def _order(library: Library, entry: Entry) -> None:
    library.jobs.order("remember", name=entry.title, document_id=entry.id)


def _gists(library: Library, memory: GistMemory) -> None:
    """Gists beside the places that they stand for."""
    document = library.document(memory.document_id)
    count = -(-len(memory.gists) // _PART)
    part = st.pagination(count, key=f"gists-{memory.document_id}") if count > 1 else 1
    rows = []
    for gist in memory.gists[(part - 1) * _PART : part * _PART]:
        where = inline(str(place(document, gist.span)), kind="gt-muted")
        mark = "" if gist.by == "model" else inline(" (the document's own words)", kind="gt-muted")
        rows.append(f"<p>{where}{mark}</p>{block(gist.text)}")
    st.html("".join(rows))


def _tree(tree: MemoryTree) -> None:
    """The tree as lists that open and close, without a script."""

    def branch(node: Node) -> str:
        title = inline(f"{node.title}: " if node.title else "") + inline(node.text)
        if not node.children:
            return f"<li>{title}</li>"
        inside = "".join(branch(child) for child in tree.children(node))
        opened = " open" if node is tree.root else ""
        return f"<li><details{opened}><summary>{title}</summary><ul>{inside}</ul></details></li>"

    st.html(f"<ul>{branch(tree.root)}</ul>")
