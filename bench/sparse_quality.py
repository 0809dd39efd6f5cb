"""What sparse attention costs in quality: answers' likelihood and needle recall beside dense.

    python bench/sparse_quality.py FOLDER [--tokens 4096] [--needles 3] [--meetings 2]

FOLDER is a model that vLLM loads (``bench/gguf_to_hf.py`` makes one). Each document is cut to the
given tokens and asked all its questions whose evidence lies within. What is right is forced upon
the model as what it generates, so that decoding is what is measured, with the log-probabilities
that the model itself gives. Reported for each setting, per token: that of a needle's answer behind
the sentence in which it stands, and the share of needles of which every token was the likeliest,
which greedy decoding would have said; that of qmsum's gold answers; and that of the evidence itself
behind its first words, which a model repeats only if it sees it. Decode settings read a prompt that
was computed densely, prefill settings decode densely. A second run adds its settings to the file.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GISTREE_SHARED", ROOT.parent / "shared"))
SETTINGS = (
    "",
    "quest:budget=1024",
    "quest:budget=1024,reuse=1",
    "quest:budget=512",
    "hip:budget=1024",
    "twilight:top_p=0.95,budget=2048",
    "streaming:budget=1024",
    "critiprefill:budget=1024",
    "critiprefill:budget=2048",
    "sample:share=0.95,budget=2048",
    "minference:budget=1024",
)
MOST = 48  # tokens of an answer or of a piece of evidence
LEAD = 12  # and of its beginning, which is given


@dataclass(frozen=True)
class Forced:
    """What a model is made to say: a lead, then what is measured; token ids."""

    kind: str
    prompt: list[int]
    lead: list[int]
    gold: list[int]


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
    settings.sort(key=phase)  # what decodes reads one dense prompt, kept in the prefix cache
    os.environ.update(
        GISTREE_ATTENTION=next((s for s in settings if bounding(s)), "quest"),  # says which parts
        VLLM_CPU_KVCACHE_SPACE="4",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="ERROR",
        HF_HUB_OFFLINE="1",
    )
    model = Model(options.folder, options.tokens)
    asked = [
        *model.cut("needles", options.needles, options.tokens),
        *model.cut("qmsum_val", options.meetings, options.tokens),
    ]
    rows = []
    for setting in settings:
        begun = time.perf_counter()
        model.use(f"{setting};dense_layers={options.dense_layers};from_tokens=0")
        if phase(setting) == "prefill":
            model.llm.reset_prefix_cache()
        row: dict = {"setting": setting or "dense"}
        told = [each for together in asked for each in model.told(together)]
        row |= scores(told)
        row["read"] = model.read()
        row["wall_s"] = round(time.perf_counter() - begun, 1)
        rows.append(row)
        print(row, flush=True)
    command = f"python bench/sparse_quality.py FOLDER --tokens {options.tokens}"
    command += f" --needles {options.needles} --meetings {options.meetings}"
    command += f" --dense-layers {options.dense_layers}"
    asked_of = dict(Counter(each.kind for together in asked for each in together))
    file = options.out / f"sparse-quality-{date.today()}-{options.tokens}.json"
    if file.exists():  # other settings of the same command, measured in another run
        before = json.loads(file.read_text(encoding="utf-8"))
        mine = {row["setting"] for row in rows}
        if before["command"] == command:
            rows = [row for row in before["rows"] if row["setting"] not in mine] + rows
    kept = {"command": command, "model": options.folder.name, "asked": asked_of, "rows": rows}
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def scores(told: list[tuple[str, list[float], bool]]) -> dict[str, float]:
    """Of each kind the mean log-probability of a token; the share of needles that are found."""
    found = {}
    for kind in dict.fromkeys(kind for kind, _, _ in told):
        values = [value for mine, each, _ in told if mine == kind for value in each]
        found[f"{kind}_log_probability"] = round(sum(values) / len(values), 3)
    likeliest = [all_first for kind, _, all_first in told if kind == "needle"]
    found["needle_recall"] = round(sum(likeliest) / max(len(likeliest), 1), 3)
    return found


def phase(setting: str) -> str:
    from serving.sparse_plugin import parse

    return "prefill" if parse(setting).prefill else "decode"


def bounding(setting: str) -> bool:
    """Whether a setting says by how many tokens keys are bounded; one run measures one such."""
    from serving.sparse_plugin import parse

    return hasattr(parse(setting).decode, "part")


class Model:
    """A model in vLLM whose attention can be changed between questions."""

    def __init__(self, folder: Path, tokens: int, **engine: str) -> None:
        from vllm import LLM
        from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

        class Forcing(AdapterLogitsProcessor):
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
            max_model_len=min(tokens + 128, 8_192),
            enforce_eager=True,
            enable_prefix_caching=True,
            max_num_batched_tokens=2_048,
            block_size=32,
            seed=0,
            logits_processors=[Forcing],
            **{"dtype": "float32"} | engine,
        )
        self._tokenizer = self.llm.get_tokenizer()
        self._counts = (0, 0)

    def tokens(self, text: str) -> list[int]:
        """A text's token ids, without special ones."""
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def cut(self, name: str, most: int, tokens: int) -> list[list[Forced]]:
        """What is asked of each of the first documents long enough, cut to so many tokens."""
        found = []
        with (SHARED / "eval" / f"{name}.jsonl").open(encoding="utf-8") as file:
            documents = [json.loads(line) for line in file]
        for document in documents:
            text = document["text"]
            ids = self.tokens(text[: 6 * tokens])[: tokens - 128]
            if len(ids) < tokens // 2 or most == 0:
                continue
            most -= 1
            found.append(asked := [])
            end = len(self._tokenizer.decode(ids))
            for question in document["questions"]:
                places = [(e["start"], e["end"]) for e in question.get("evidence") or []]
                if not places or any(last > end for _, last in places):
                    continue
                prompt = ids + self.tokens(f"\n\nQuestion: {question['question']}")
                quoted = text[places[0][0] : places[0][1]]
                if "answer" in question:
                    answer = self.tokens(f" {question['answer']}")[:MOST]
                    asked.append(Forced("answer", prompt, self.tokens("\nAnswer:"), answer))
                    quote = self.tokens(quoted)[: LEAD + MOST]
                    lead = self.tokens("\nQuote: ") + quote[:LEAD]
                    asked.append(Forced("evidence", prompt, lead, quote[LEAD:]))
                elif (answer := question["answers"][0]) in quoted:
                    before = quoted[: quoted.rindex(answer)].rstrip()
                    lead = self.tokens(f"\nAnswer: {before}")
                    asked.append(Forced("needle", prompt, lead, self.tokens(f" {answer}")))
        return found

    def use(self, spec: str) -> None:
        """Attention as ``GISTREE_ATTENTION`` would have it."""
        from serving.sparse_plugin import parse

        def change(worker) -> None:
            for each in _sparse(worker):
                each.use(parse(spec))

        self.llm.collective_rpc(change)
        self.read()

    def told(self, asked: list[Forced]) -> list[tuple[str, list[float], bool]]:
        """Of each its kind, the gold tokens' log-probabilities, whether each was the likeliest.

        The document is read first, so that all that is asked of it begins to decode in one step.
        """
        from vllm import SamplingParams

        prompts = [{"prompt_token_ids": each.prompt} for each in asked]
        self.llm.generate(prompts[0], SamplingParams(max_tokens=1), use_tqdm=False)
        sampling = [
            SamplingParams(
                temperature=0,
                max_tokens=len(each.lead) + len(each.gold),
                ignore_eos=True,
                logprobs=0,
                extra_args={"forced": [*each.lead, *each.gold]},
            )
            for each in asked
        ]
        told = []
        outputs = self.llm.generate(prompts, sampling, use_tqdm=False)
        for each, output in zip(asked, outputs, strict=True):
            said, forced = output.outputs[0], [*each.lead, *each.gold]
            if list(said.token_ids) != forced:
                raise SystemExit("the model did not say what was forced upon it")
            steps = zip(said.logprobs, forced, strict=True)
            gold = [step[token] for step, token in steps][len(each.lead) :]
            likeliest = all(one.rank == 1 for one in gold)
            told.append((each.kind, [one.logprob for one in gold], likeliest))
        return told

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
