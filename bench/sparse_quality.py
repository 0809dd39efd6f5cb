"""What sparse attention costs in quality: answers' likelihood and needle recall beside dense.

    python bench/sparse_quality.py FOLDER [--tokens 4096] [--needles 3] [--meetings 2]

FOLDER is a model that vLLM loads (``bench/gguf_to_hf.py`` makes one). Each document is cut to the
given tokens and asked all its questions whose evidence lies within. "Answer:" and the gold answer
are forced upon the model as what it generates, so that decoding is what is measured, with the
log-probabilities that the model itself gives them. Reported for each setting: log-probability a
token of the gold answer, and for needles the share of answers of which every token was the
likeliest, which is what greedy decoding would have said. Decode settings read a prompt that was
computed densely, prefill settings decode densely.
"""

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GISTREE_SHARED", ROOT.parent / "shared"))
SETTINGS = (
    "",
    "quest:budget=1024",
    "quest:budget=512",
    "twilight:top_p=0.95,budget=2048",
    "streaming:budget=1024",
    "hip:budget=1024",
    "critiprefill:budget=1024",
    "critiprefill:budget=2048",
    "sample:share=0.95,budget=2048",
    "minference:budget=1024",
)
LEAD = "\nAnswer:"
MOST_ANSWER = 48


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=4_096, help="of a document")
    parser.add_argument("--needles", type=int, default=3, help="documents with needles")
    parser.add_argument("--meetings", type=int, default=2, help="documents of qmsum")
    parser.add_argument("--settings", default="", help="separated by |; default: one a selector")
    parser.add_argument("--dense-layers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    settings = options.settings.split("|") if options.settings else list(SETTINGS)
    os.environ.update(
        GISTREE_ATTENTION="quest",
        VLLM_CPU_KVCACHE_SPACE="4",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="ERROR",
        HF_HUB_OFFLINE="1",
    )
    model = Model(options.folder, options.tokens)
    asked = {
        "needles": model.cut("needles", options.needles, options.tokens),
        "qmsum": model.cut("qmsum_val", options.meetings, options.tokens),
    }
    rows = []
    settings.sort(key=phase)  # what decodes reads one dense prompt, kept in the prefix cache
    for setting in settings:
        begun = time.perf_counter()
        model.use(f"{setting};dense_layers={options.dense_layers}")
        if phase(setting) == "prefill":
            model.llm.reset_prefix_cache()
        row: dict = {"setting": setting or "dense"}
        for name, questions in asked.items():
            told = [model.told(each) for each in questions]
            tokens = [value for values, _ in told for value in values]
            row[f"{name}_log_probability"] = round(sum(tokens) / max(len(tokens), 1), 3)
            if name == "needles":
                row["needles_recall"] = round(
                    sum(likeliest for _, likeliest in told) / len(told), 3
                )
        row["read"] = model.read()
        row["wall_s"] = round(time.perf_counter() - begun, 1)
        rows.append(row)
        print(row, flush=True)
    command = f"python bench/sparse_quality.py FOLDER --tokens {options.tokens}"
    command += f" --needles {options.needles} --meetings {options.meetings}"
    command += f" --dense-layers {options.dense_layers}"
    kept = {
        "command": command,
        "model": options.folder.name,
        "questions": {name: len(questions) for name, questions in asked.items()},
        "rows": rows,
    }
    file = options.out / f"sparse-quality-{date.today()}.json"
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def phase(setting: str) -> str:
    from serving.sparse_plugin import parse

    return "prefill" if parse(setting).prefill else "decode"


class Model:
    """A model in vLLM whose attention can be changed between questions."""

    def __init__(self, folder: Path, tokens: int) -> None:
        from vllm import LLM
        from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

        class Forced(AdapterLogitsProcessor):
            """Says the tokens that were given with the request, one after the other."""

            def is_argmax_invariant(self) -> bool:
                return False

            def new_req_logits_processor(self, params):
                forced = (params.extra_args or {}).get("forced")
                if not forced:
                    return None

                def force(said, logits):
                    logits.fill_(-1e9)
                    logits[forced[min(len(said), len(forced) - 1)]] = 0.0
                    return logits

                return force

        self.llm = LLM(
            model=str(folder),
            dtype="float32",
            max_model_len=min(tokens + 256, 8_192),
            enforce_eager=True,
            enable_prefix_caching=True,
            max_num_batched_tokens=2_048,
            block_size=32,
            seed=0,
            logits_processors=[Forced],
        )
        self._tokenizer = self.llm.get_tokenizer()
        self._counts = (0, 0)

    def tokens(self, text: str) -> list[int]:
        """A text's token ids, without special ones."""
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def cut(self, name: str, most: int, tokens: int) -> list[tuple[list[int], list[int]]]:
        """Prompts and gold answers of the first documents long enough, cut to so many tokens."""
        found = []
        with (SHARED / "eval" / f"{name}.jsonl").open(encoding="utf-8") as file:
            documents = [json.loads(line) for line in file]
        for document in documents:
            text = document["text"][: 6 * tokens]
            ids = self.tokens(text)[: tokens - 64]
            if len(ids) < tokens // 2 or most == 0:
                continue
            most -= 1
            end = len(self._tokenizer.decode(ids))
            for question in document["questions"]:
                evidence = question.get("evidence") or []
                if not evidence or any(each["end"] > end for each in evidence):
                    continue
                answer = question.get("answer") or question["answers"][0]
                prompt = ids + self.tokens(f"\n\nQuestion: {question['question']}")
                found.append((prompt, self.tokens(f" {answer}")[:MOST_ANSWER]))
        return found

    def use(self, spec: str) -> None:
        """Attention as ``GISTREE_ATTENTION`` would have it."""
        from serving.sparse_plugin import parse

        def change(worker) -> None:
            for each in _sparse(worker):
                each.use(parse(spec))

        self.llm.collective_rpc(change)
        self.read()

    def told(self, asked: tuple[list[int], list[int]]) -> tuple[list[float], bool]:
        """Log-probabilities of a gold answer's tokens, and whether each was the likeliest."""
        from vllm import SamplingParams

        prompt, answer = asked
        lead = self.tokens(LEAD)
        forced = [*lead, *answer]
        sampling = SamplingParams(
            temperature=0,
            max_tokens=len(forced),
            ignore_eos=True,
            logprobs=0,
            extra_args={"forced": forced},
        )
        (output,) = self.llm.generate({"prompt_token_ids": prompt}, sampling, use_tqdm=False)
        said = output.outputs[0]
        if list(said.token_ids) != forced:
            raise SystemExit("the model did not say what was forced upon it")
        mine = [each[token] for each, token in zip(said.logprobs, forced, strict=True)][len(lead) :]
        return [each.logprob for each in mine], all(each.rank == 1 for each in mine)

    def read(self) -> float | None:
        """Share of the tokens that were read since this was last asked."""

        def counts(worker) -> tuple[int, int]:
            sparse = _sparse(worker)
            return sum(s.tokens_read for s in sparse), sum(s.tokens_there for s in sparse)

        before, self._counts = self._counts, self.llm.collective_rpc(counts)[0]
        there = self._counts[1] - before[1]
        return round((self._counts[0] - before[0]) / there, 3) if there else None


def _sparse(worker) -> list:
    layers = worker.get_model().modules()
    found = [getattr(module, "impl", None) for module in layers]
    return [each.sparse for each in found if hasattr(each, "sparse")]


if __name__ == "__main__":
    sys.exit(main())
