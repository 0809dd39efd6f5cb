"""Adds or deletes documents until it is killed. Usage: crash_worker.py LIBRARY ACTION FILE…"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
from fakes import HashingEmbedder

from app.library import Library
from app.settings import Settings


class SlowEmbedder(HashingEmbedder):
    """Takes its time, so that a kill falls between batches too."""

    def embed(self, texts):
        time.sleep(0.02)
        return super().embed(texts)


def main() -> None:
    place, action, *files = sys.argv[1:]
    with Library(place, settings=Settings(library=place), embedder=SlowEmbedder()) as library:
        library.finish_interrupted()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for file in files:
            if action == "add":
                library.add(file)
            else:
                library.delete(Path(file).name)
            sys.stdout.write(f"{action} {Path(file).name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
