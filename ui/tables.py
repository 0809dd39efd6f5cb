"""Small tables of foreign text, which wrap in a narrow window and are read out as tables."""

from collections.abc import Sequence

from ui.safe import inline


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str]) -> str:
    """HTML of a table whose first cell in each row heads it.

    Args:
        rows: Texts.
        head: Of the columns.
    """
    top = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{inline(row[0])}</th>'
        + "".join(f"<td>{inline(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f'<table class="gt-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
