"""What the elements of HTML are to a reader."""

from memory.blocks import BlockKind

HEADINGS = {f"h{level}": level for level in range(1, 7)}

# They begin and end a paragraph; "text" is SVG's.
BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
    *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "p", "pre"),
    *("section", "summary", "table", "tbody", "td", "text", "tfoot", "th", "thead", "tr", "ul"),
    *("listing", "xmp", "plaintext", "foreignobject", "svg"),
    *HEADINGS,
}

# Never shown as text, or controls of a page and not what it says. What stands in <noscript> is for
# browsers without scripts, in <audio> and <video> for those that cannot play them.
DROPPED = {
    *("head", "script", "style", "template", "noscript", "title", "meta", "link", "iframe"),
    *("noframes", "noembed", "audio", "video", "select", "datalist", "button", "textarea", "input"),
    *("rp", "metadata", "desc", "defs", "annotation", "annotation-xml"),
}
NAVIGATION_ROLES = {"navigation", "search", "doc-toc", "doc-pagelist"}
DROPPED_CLASSES = {
    *("katex-html", "headerlink", "mw-editsection", "mjx-chtml", "MathJax_Preview", "mathjax_svg"),
}

KINDS: dict[str, BlockKind] = {
    **{"pre": "code", "listing": "code", "xmp": "code", "plaintext": "code"},
    **{"figcaption": "caption", "caption": "caption"},
    **{"li": "item", "dt": "item", "dd": "item"},
}

# A block of one of these is one stanza: what would be its paragraphs are its lines.
STANZAS = {
    *("linegroup", "line-group", "line-block", "lineblock", "stanza", "strophe", "verse", "poem"),
    *("poetry", "lg", "z3998:verse", "z3998:poem"),
}
LINE_NUMBERS = {"lnum", "linenum", "line-number", "poem-line-number", "num", "verse-num"}
