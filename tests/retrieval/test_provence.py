"""The logic around a Provence model, with a tiny one of its architecture and random weights."""

import pytest

from memory.sentences import sentences
from retrieval.pruners.provence import ProvencePruner
from serving.errors import ModelNotFound
from serving.plugins import names

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),  # DeBERTa's own
]

PASSAGE = "The keeper lit the lamp. It burned whale oil. Gulls slept on the roof."
QUESTION = "Which oil burned?"

CODE = """
from dataclasses import dataclass

import torch
from transformers import DebertaV2Config, DebertaV2Model, DebertaV2PreTrainedModel
from transformers.utils import ModelOutput


class TinyConfig(DebertaV2Config):
    model_type = "TinyProvence"


@dataclass
class TinyOutput(ModelOutput):
    compression_logits: torch.FloatTensor = None
    ranking_scores: torch.FloatTensor = None


class TinyProvence(DebertaV2PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.deberta = DebertaV2Model(config)
        self.token_classifier = torch.nn.Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None):
        hidden = self.deberta(input_ids, attention_mask=attention_mask)[0]
        return TinyOutput(self.token_classifier(hidden), hidden[:, 0, 0])
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder as one would fetch it: weights, tokenizer, and code of its own."""
    torch = pytest.importorskip("torch", reason="needs the extra 'provence'")
    transformers = pytest.importorskip("transformers", reason="needs the extra 'provence'")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "modeling_tiny.py").write_text(CODE, encoding="utf-8")
    split = pre_tokenizers.BertPreTokenizer()
    found = {w for w, _ in split.pre_tokenize_str(f"{PASSAGE} {QUESTION} Lamps")}
    vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(found)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = split
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    namespace: dict = {"__name__": "modeling_tiny"}
    exec(CODE, namespace)
    torch.manual_seed(3)
    config = namespace["TinyConfig"](
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, relative_attention=True,
        pos_att_type=["p2c", "c2p"], type_vocab_size=0, initializer_range=1.0,
    )  # fmt: skip
    config.auto_map = {
        "AutoConfig": "modeling_tiny.TinyConfig",
        "AutoModel": "modeling_tiny.TinyProvence",
    }
    namespace["TinyProvence"](config).save_pretrained(folder)
    return str(folder)


def prune(checkpoint, passages, headers=None, **options):
    pruner = ProvencePruner(model=checkpoint, trust_remote_code=True, device="cpu", **options)
    headers = headers or [""] * len(passages)
    return pruner.prune(QUESTION, passages, headers=headers, embedder=None)


def test_code_that_comes_with_a_checkpoint_is_not_run_unasked(checkpoint):
    with pytest.raises(ModelNotFound, match="trust_remote_code=True"):
        ProvencePruner(model=checkpoint).prune(QUESTION, [PASSAGE], headers=[""], embedder=None)


def test_a_checkpoint_that_is_not_there_says_so(tmp_path):
    pytest.importorskip("transformers", reason="needs the extra 'provence'")
    with pytest.raises(ModelNotFound, match="no checkpoint"):
        ProvencePruner(model=str(tmp_path / "none")).prune("?", ["A."], headers=[""], embedder=None)


def test_the_threshold_runs_from_everything_to_nothing(checkpoint):
    everything = sentences(PASSAGE)
    assert prune(checkpoint, [PASSAGE, ""], threshold=0.0) == [everything, []]
    assert prune(checkpoint, [PASSAGE], threshold=1.0) == [[]]
    assert prune(checkpoint, [], threshold=0.5) == []


@pytest.mark.parametrize("head", ["", "Lamps"])
def test_a_sentence_stays_where_the_mean_over_its_tokens_passes(checkpoint, head):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=True)
    model = AutoModel.from_pretrained(checkpoint, trust_remote_code=True).eval()
    words = tokenizer(QUESTION, f"{head}\n{PASSAGE}", return_tensors="pt")
    with torch.inference_mode():
        chance = model(words["input_ids"]).compression_logits.softmax(-1)[0, :, 1]
    sizes = [len(tokenizer.tokenize(s.of(PASSAGE))) for s in sentences(PASSAGE)]
    at = 1 + len(tokenizer.tokenize(QUESTION)) + 1 + len(tokenizer.tokenize(head))
    means = []
    for size in sizes:
        means.append(float(chance[at : at + size].mean()))
        at += size
    assert at == len(chance) - 1
    assert max(means) - min(means) > 0.01
    for threshold in [mean + nudge for mean in means for nudge in (-1e-4, 1e-4)]:
        wanted = [s for s, m in zip(sentences(PASSAGE), means, strict=True) if m > threshold]
        assert prune(checkpoint, [PASSAGE], [head], threshold=threshold) == [wanted]


def test_a_passage_longer_than_the_window_is_read_in_windows(checkpoint):
    long = " ".join([PASSAGE] * 20)
    assert prune(checkpoint, [long], threshold=0.0, max_tokens=32) == [sentences(long)]
    few = prune(checkpoint, [long], threshold=0.5, max_tokens=32, batch_size=3)
    assert few == prune(checkpoint, [long], threshold=0.5, max_tokens=32, batch_size=1)
    counts = [len(prune(checkpoint, [long], threshold=t / 10, max_tokens=32)[0]) for t in range(11)]
    assert counts == sorted(counts, reverse=True)


def test_a_sentence_longer_than_the_window_is_judged_by_its_beginning(checkpoint):
    long = "lamp " * 200 + "oil."
    assert prune(checkpoint, [long], threshold=0.0, max_tokens=32) == [sentences(long)]


def test_it_is_registered():
    assert "provence" in names("retrieval.pruners")
