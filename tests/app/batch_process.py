"""A batch with a model that says one thing, in a process that a test kills."""

import sys
from pathlib import Path

from app.batch.batch import Batch
from app.batch.run import RowDone
from app.library import Library
from serving.scripted import Reply, ScriptedLLM

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
from fakes import HashingEmbedder

folder, document, source, out = map(Path, sys.argv[1:])
model = ScriptedLLM([Reply("It was forty feet deep.", word_s=0.002)] * 99)
with Library(folder, model=model, embedder=HashingEmbedder()) as library:
    library.add(document)
    with Batch(library, source, out) as batch:
        for event in batch.run():
            if isinstance(event, RowDone):
                sys.stdout.write(f"{event.row.id}\n")
                sys.stdout.flush()
