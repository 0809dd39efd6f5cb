"""Does the embedder find as well when its int8 weights are multiplied in int8 (decision 12)?

    python bench/int8.py [--questions 60] [--chars 60000]

The default embedder as it is published (weights kept as int8, multiplied as float32) beside the
rewritten graph: rank of the first chunk of the asked document that holds some evidence, by cosine
alone, and the processor time that the chunks took. Both run on one thread of one process.
"""

import argparse
import json
import sys
import time
from datetime import date

import numpy as np
import platformdirs
from evalsets import ROOT, load

from app.library import CHUNK_TOKENS
from memory.chunker import chunk
from memory.document import Span
from memory.store import header
from retrieval import onnx_embedder
from retrieval.onnx_embedder import OnnxEmbedder

SETS = (
    *("qmsum_val", "fairytaleqa_val", "contractnli_dev", "bamboo_paperqa_4k"),
    *("hotpotqa", "xquad_en", "xquad_de"),
)


def embedder(*, in_int8: bool) -> OnnxEmbedder:
    """The default model on one thread, rewritten or not."""
    models = platformdirs.user_cache_path("gistree") / "models"
    model, tokenizer = models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2/tokenizer.json"
    onnx_embedder.multiplies_int8 = lambda: in_int8
    return OnnxEmbedder(model, tokenizer, "minilm-l6-v2-int8", num_threads=1)


def rank(scores: np.ndarray, chunks: list[Span], evidence: tuple[Span, ...]) -> int:
    """Place of the first chunk that touches the evidence, from 1."""
    order = np.argsort(-scores, kind="stable").tolist()
    touching = (
        place
        for place, number in enumerate(order, 1)
        if any(chunks[number].start < e.end and e.start < chunks[number].end for e in evidence)
    )
    return next(touching, len(chunks) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=60, help="most questions a set")
    parser.add_argument("--chars", type=int, default=60_000, help="most text a set")
    options = parser.parse_args()
    both = {"float32": embedder(in_int8=False), "int8": embedder(in_int8=True)}
    ranks: dict[str, list[int]] = {name: [] for name in both}
    cpu_s = dict.fromkeys(both, 0.0)
    cosines, by_set, num_chunks = [], {}, 0
    for name in SETS:
        questions, _ = load(name, "held-out", options.questions, chars=options.chars)
        first = len(ranks["int8"])
        for document in {q.document.id: q.document for q in questions}.values():
            asked = [q for q in questions if q.document.id == document.id]
            count = both["int8"].token_counts
            chunks = chunk(document, count_tokens=count, max_tokens=CHUNK_TOKENS)
            texts = [f"{header(document, c)}\n{c.of(document.text)}".strip() for c in chunks]
            num_chunks += len(texts)
            made = {}
            for kind, each in both.items():
                start = time.process_time()
                made[kind] = each.embed(texts)
                cpu_s[kind] += time.process_time() - start
                scores = each.embed([q.text for q in asked]) @ made[kind].T
                ranks[kind] += [
                    rank(row, chunks, q.evidence) for row, q in zip(scores, asked, strict=True)
                ]
            cosines.append((made["float32"] * made["int8"]).sum(1))
        by_set[name] = {
            kind: {
                "found_first": round(float(np.mean(np.array(some[first:]) == 1)), 3),
                "found_in_five": round(float(np.mean(np.array(some[first:]) <= 5)), 3),
            }
            for kind, some in ranks.items()
        }
        print(name, by_set[name], flush=True)
    total = {
        kind: {
            "found_first": round(float(np.mean(np.array(some) == 1)), 3),
            "found_in_five": round(float(np.mean(np.array(some) <= 5)), 3),
            "mean_reciprocal_rank": round(float(np.mean(1 / np.array(some))), 3),
            "chunks_cpu_s": round(cpu_s[kind], 2),
        }
        for kind, some in ranks.items()
    }
    same = np.concatenate(cosines)
    report = {
        "command": f"python bench/int8.py {' '.join(sys.argv[1:])}".strip(),
        "questions": len(ranks["int8"]),
        "chunks": num_chunks,
        "cosine_of_both_vectors": {
            "mean": round(float(same.mean()), 4),
            "worst": round(float(same.min()), 4),
        },
        "total": total,
        "sets": by_set,
    }
    file = ROOT / "bench" / "results" / f"int8-{date.today()}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
