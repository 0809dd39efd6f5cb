"""What one layer reads from step to step, without an engine."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch; make test-vllm")

from serving.head_patterns import HeadPattern, HeadPatterns, save_patterns  # noqa: E402
from serving.sparse_layer import SparseLayer, step_of  # noqa: E402
from serving.sparse_plugin import parse  # noqa: E402

BLOCK, HEADS, GROUP, DIM = 4, 2, 3, 8
NAME = "model.layers.5.self_attn.attn"


class Engine:
    """One sequence of random keys, a token at a time behind its prompt."""

    def __init__(self, spec, *, prompt=60):
        self.layer = SparseLayer(
            parse(spec), num_kv_heads=HEADS, group_size=GROUP, head_dim=DIM, scale=0.3
        )
        self.random = torch.Generator().manual_seed(0)
        self.table = torch.randperm(64, generator=self.random).to(torch.int32).unsqueeze(0)
        self.length = 0
        self.prefilled = self.step(prompt)

    def step(self, new=1):
        places = torch.arange(self.length, self.length + new)
        slots = self.table[0, places // BLOCK].long() * BLOCK + places % BLOCK
        self.length += new
        keys = torch.randn(new, HEADS, DIM, generator=self.random)
        self.layer.write(keys, slots, num_blocks=64, block_size=BLOCK)
        query = torch.randn(new, HEADS * GROUP, DIM, generator=self.random)
        lengths = torch.tensor([self.length], dtype=torch.int32)
        starts = torch.tensor([0, new], dtype=torch.int32)
        step = step_of(starts, lengths, self.table, block_size=BLOCK)
        return self.layer.rows(NAME, query, step)

    def blocks(self, rows):
        """Of each head, the physical blocks that are read, the newest left out."""
        counts = (-(-rows.seq_lens // BLOCK)).tolist()
        return [rows.table[head, : count - 1].tolist() for head, count in enumerate(counts)]


def test_a_selection_is_kept_for_as_many_steps_as_asked_and_sees_the_newest_token():
    engine = Engine("quest:budget=24,newest=4,reuse=3;from_tokens=0")
    read = [engine.step() for _ in range(3)]
    assert [rows.table.data_ptr() for rows in read] == [read[0].table.data_ptr()] * 3
    assert [rows.seq_lens.tolist()[0] for rows in read] == [21, 22, 23]
    again = engine.step()
    assert again.table.data_ptr() != read[0].table.data_ptr()
    assert again.seq_lens.tolist() == [24, 24]


def test_a_new_block_or_another_sequence_ends_a_selection():
    engine = Engine("quest:budget=24,newest=4,reuse=100;from_tokens=0", prompt=62)
    first, second = engine.step(), engine.step()  # the 63rd and 64th token: the same block
    third = engine.step()  # the 65th begins a block
    assert first.table.data_ptr() == second.table.data_ptr() != third.table.data_ptr()
    assert third.seq_lens.tolist() == [21, 21]
    engine.table = engine.table.roll(7, dims=1)  # the same lengths, other blocks
    assert engine.step().table.data_ptr() != third.table.data_ptr()


def test_a_prompt_in_between_ends_a_selection_even_where_the_newest_block_is_the_same():
    engine = Engine("quest:budget=24,newest=4,reuse=100;from_tokens=0")
    kept = engine.step()
    engine.step(2)  # dense, as no selector is named for prompts
    engine.length -= 2
    assert engine.step().table.data_ptr() != kept.table.data_ptr()


def test_short_sequences_first_layers_and_phases_without_a_selector_are_read_whole():
    assert Engine("quest:budget=24,newest=4").prefilled is None
    assert Engine("quest:budget=24,newest=4;from_tokens=80").step() is None
    assert Engine("quest:budget=24,newest=4;dense_layers=6").step() is None
    assert Engine("critiprefill:budget=24,segment=16").step() is None
    assert Engine("critiprefill:budget=24,segment=16").prefilled is not None


def test_what_is_read_is_counted_token_by_token():
    engine = Engine("quest:budget=24,newest=4;critiprefill:budget=4000,segment=16;from_tokens=0")
    everything = HEADS * sum(range(1, 61))
    assert (engine.layer.tokens_read, engine.layer.tokens_there) == (everything, everything)
    engine.step()
    assert engine.layer.tokens_read == everything + HEADS * 21
    assert engine.layer.tokens_there == everything + HEADS * 61


def test_a_layer_that_the_head_patterns_do_not_name_stays_dense_and_says_so(tmp_path, caplog):
    path = tmp_path / "heads.json"
    shape = HeadPattern("a_shape")
    save_patterns(HeadPatterns("some-model", 24, ((shape, shape),) * 5), path)
    spec = f"minference:heads={path},budget=24,first=4,segment=16"
    assert Engine(spec).prefilled is None  # layer 5 is the sixth
    assert "the head patterns name no layer 5 of 2 KV heads" in caplog.text
    save_patterns(HeadPatterns("some-model", 24, ((shape, shape),) * 6), tmp_path / "six.json")
    assert Engine(spec.replace("heads.json", "six.json")).prefilled is not None


def test_selectors_that_look_at_other_parts_cannot_take_over_from_keys_that_are_known():
    engine = Engine("quest:budget=24,newest=4,part=2;from_tokens=0")
    engine.layer.use(parse("twilight:budget=24,newest=4,part=2"))
    with pytest.raises(ValueError, match="bounded 2 by 2, not 4"):
        engine.layer.use(parse("quest:budget=24,newest=4,part=4"))


def test_rows_bring_each_query_back_to_its_place():
    rows = Engine("critiprefill:budget=24,segment=16").prefilled
    places = rows.places.tolist()
    assert sorted(places) == list(range(60 * HEADS))
    assert [places[i] for i in rows.back().tolist()] == list(range(60 * HEADS))
