"""Makes docs/demo.svg, the picture in the README, from a real run of the demo.

Usage: python docs/picture.py (in an environment with gistree installed).
"""

import re
from pathlib import Path

from app import demo, terminal


def main() -> None:
    """Runs the demo with its output recorded."""
    terminal.out.record = True
    terminal.out.width = 96
    demo.run_demo(None)
    svg = terminal.out.export_svg(title="gistree demo", clear=False)
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # fonts of another host
    (Path(__file__).parent / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
