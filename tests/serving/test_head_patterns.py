"""MInference's patterns: what a head reads by each, how that is measured, and the file of it."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch; make test-vllm")

from serving.errors import BadOption  # noqa: E402
from serving.head_patterns import (  # noqa: E402
    HeadPattern,
    HeadPatterns,
    load_patterns,
    save_patterns,
)
from serving.pattern_recall import CANDIDATES, best_patterns, measure, recall  # noqa: E402
from serving.plugins import make  # noqa: E402
from serving.selectors.minference import LayerPatterns, MInference  # noqa: E402

OPTIONS = MInference(budget=256, first=64, segment=128)
A_SHAPE, COLUMNS = HeadPattern("a_shape"), HeadPattern("vertical_slash", 1.0)
DIAGONALS, DENSE = HeadPattern("vertical_slash", 0.0), HeadPattern("dense")


def drawn(tokens, heads=1, dim=64):
    random = torch.Generator().manual_seed(1)
    q = 0.1 * torch.randn(tokens, heads, 2, dim, generator=random)
    return q, 0.1 * torch.randn(tokens, heads, dim, generator=random)


def test_the_share_of_an_a_shape_is_what_counting_token_by_token_says():
    q, keys = drawn(1_000)
    q, keys = 20 * q, 3 * keys
    shares = []
    for start in range(0, 1_000, 128):
        if start <= 256:
            continue
        last = min(start + 128, 1_000) - 1
        for place in torch.linspace(start, last, 8).round().long().tolist():
            weights = (q[place, 0] @ keys[: place + 1, 0].T).softmax(-1)
            shares.append((weights[:, :64].sum(-1) + weights[:, start - 192 :].sum(-1)).mean())
    found = recall(LayerPatterns(OPTIONS, (A_SHAPE,)), q, keys)
    torch.testing.assert_close(found[0], torch.stack(shares).mean(), atol=1e-4, rtol=0)


def test_a_dense_head_reads_everything():
    q, keys = drawn(700, heads=2)
    found = recall(LayerPatterns(OPTIONS, (DENSE, A_SHAPE)), 20 * q, keys)
    torch.testing.assert_close(found[0], torch.tensor(1.0))
    assert found[1] < 0.9


def test_columns_find_the_places_that_all_queries_look_at():
    q, keys = drawn(1_000)
    for place in (300, 410, 505):
        keys[place, 0, 0] = 9.0
    q[..., 0] = 3.0
    by_columns = recall(LayerPatterns(OPTIONS, (COLUMNS,)), q, keys)
    by_window = recall(LayerPatterns(OPTIONS, (A_SHAPE,)), q, keys)
    assert by_columns > 0.95
    assert by_window < 0.6


def test_diagonals_find_what_every_query_sees_at_the_same_distance():
    """Each query looks ten blocks back, so each segment has to read other blocks."""
    q, keys = drawn(1_600)
    block = torch.arange(1_600) // 32
    keys[torch.arange(1_600), 0, block] += 8.0
    back = block >= 10
    q[torch.arange(1_600)[back], 0, :, (block - 10)[back]] += 3.0
    shares = {
        each: float(recall(LayerPatterns(OPTIONS, (each,)), q, keys)[0])
        for each in (DIAGONALS, COLUMNS, A_SHAPE)
    }
    assert shares[DIAGONALS] > 0.95
    assert shares[DIAGONALS] > shares[COLUMNS] + 0.2
    assert shares[DIAGONALS] > shares[A_SHAPE] + 0.2


def test_no_pattern_reads_more_than_the_budget_and_the_segment():
    q, keys = drawn(900, heads=2)
    patterns = (A_SHAPE, HeadPattern("vertical_slash", 0.5))
    num_blocks = torch.tensor([3, 8, 20, 28])
    low, high = keys[:896].unflatten(0, (28, 32)).aminmax(dim=1)
    selection = LayerPatterns(OPTIONS, patterns).select(
        q=q[:64].view(4, 16, 2, 2, 64),
        key_min=low,
        key_max=high,
        num_blocks=num_blocks,
        block_size=32,
    )
    assert selection.counts.tolist() == [[3, 3], [8, 8], [8, 8], [8, 8]]
    for row, ends in enumerate(num_blocks.tolist()):
        for head in range(2):
            chosen = selection.blocks[row, head, : int(selection.counts[row, head])].tolist()
            assert chosen == sorted(set(chosen))
            assert chosen[0] == 0
            assert chosen[-1] == ends - 1


def test_of_several_documents_the_mean_decides_and_what_no_pattern_reads_stays_dense():
    one = torch.zeros(len(CANDIDATES), 3)
    other = torch.zeros(len(CANDIDATES), 3)
    one[0], other[0] = torch.tensor([0.95, 0.3, 0.99]), torch.tensor([0.95, 0.3, 0.2])
    one[2], other[2] = torch.tensor([0.2, 0.5, 0.92]), torch.tensor([0.2, 0.5, 0.94])
    assert best_patterns([one, other], at_least=0.9) == (
        HeadPattern("a_shape", share=0.95),
        HeadPattern("dense", share=1.0),
        HeadPattern("vertical_slash", vertical=CANDIDATES[2].vertical, share=0.93),
    )


def test_a_document_within_the_budget_says_nothing():
    with pytest.raises(ValueError, match="200 tokens are no more than the budget of 256"):
        measure(OPTIONS, *drawn(200))


def test_the_file_is_read_as_it_was_written_and_each_layer_gets_its_heads(tmp_path):
    path = tmp_path / "heads.json"
    kept = HeadPatterns("some-model", 256, ((A_SHAPE, DENSE), (COLUMNS, A_SHAPE)))
    save_patterns(kept, path)
    assert load_patterns(path) == kept
    selector = make("serving.selectors", f"minference:heads={path},budget=256")
    assert selector.for_layer(1, 2) is not None
    assert selector.for_layer(2, 2) is None  # a model with more layers
    assert selector.for_layer(0, 3) is None  # or other heads
    assert MInference().for_layer(99, 7) is not None  # no file: all alike


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Invalid JSON"),
        ('{"model": "m", "budget": 1, "layers": [[{"pattern": "magic"}]]}', "a_shape"),
        ('{"model": "m", "layers": []}', "budget"),
    ],
)
def test_a_file_that_holds_something_else_is_said_before_a_model_is_loaded(tmp_path, text, said):
    path = tmp_path / "heads.json"
    path.write_text(text)
    with pytest.raises(BadOption, match=said):
        make("serving.selectors", f"minference:heads={path}")


def test_an_absent_file_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(BadOption, match=r"cannot be read .* python -m serving.calibrate"):
        make("serving.selectors", f"minference:heads={tmp_path / 'none.json'}")
