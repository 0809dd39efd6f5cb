"""Pages as pictures: drawn within bounds, and whether a page is one."""

from typing import Any

MAX_PIXELS = 8_000_000
MAX_SIDE = 2500  # pixels
_MAX_SCALE = 300 / 72  # a scan has seldom more to show


def draw(page: Any, *, max_side: int = MAX_SIDE, scale: float = _MAX_SCALE) -> tuple[Any, float]:
    """A page drawn on white: (uint8 [height, width, 3], pixels a point).

    Args:
        page: A ``pypdfium2.PdfPage``.
        max_side: Its longer side has at most so many pixels.
        scale: Pixels a point that are wished for.
    """
    width, height = page.get_size()
    longest = max(width, height, 1.0)
    bounded = min(scale, max_side / longest, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    # Nothing is drawn with less than a pixel; a strip of a page keeps one across.
    bounded = max(bounded, 1 / max(min(width, height), 1.0) if longest < 10_000 else 1e-6)
    bitmap = page.render(scale=bounded, may_draw_forms=False, rev_byteorder=False)
    try:
        image = bitmap.to_numpy()
        return image[:, :, :3].copy() if image.ndim == 3 else image.copy(), bounded
    finally:
        bitmap.close()


def picture_share(page: Any) -> tuple[float, bool]:
    """Share of the page that pictures cover, at most 1, and whether there is anything on it."""
    import pypdfium2.raw as pdfium

    width, height = page.get_size()
    covered = 0.0
    is_drawn = False
    form: Any = None  # the one that what follows is in, until its first picture
    for number, found in enumerate(page.get_objects(max_depth=4)):
        is_drawn = True
        if found.level == 0:
            form = found if found.type == pdfium.FPDF_PAGEOBJ_FORM else None
        if found.type == pdfium.FPDF_PAGEOBJ_IMAGE:
            outer = form if found.level else found
            if outer is not None:
                left, bottom, right, top = outer.get_bounds()
                covered += max(right - left, 0.0) * max(top - bottom, 0.0)
            form = None
        if number > 5000:
            break
    return min(covered / max(width * height, 1.0), 1.0), is_drawn
