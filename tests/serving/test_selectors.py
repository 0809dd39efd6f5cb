"""Sparse attention against dense attention computed in another way: key by key, without blocks."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch; make test-vllm")

from serving.block_bounds import BlockBounds, Room  # noqa: E402
from serving.bound_loops import COMPILED  # noqa: E402
from serving.errors import UnknownName  # noqa: E402
from serving.plugins import make, names  # noqa: E402
from serving.prefill_plan import cut, prefill_rows  # noqa: E402
from serving.seen_keys import SeenKeys  # noqa: E402
from serving.selection import estimated_shares, top_blocks, upper_bound  # noqa: E402
from serving.sparse_layer import SparseLayer, Step  # noqa: E402
from serving.sparse_plan import (  # noqa: E402
    Batch,
    decode_rows,
    joined,
    select_decode,
)
from serving.sparse_plugin import parse  # noqa: E402

BLOCK = 4
HEADS, GROUP, DIM = 2, 3, 8
DECODE = [n for n in names("serving.selectors") if make("serving.selectors", n).phase == "decode"]
PREFILL = [n for n in names("serving.selectors") if make("serving.selectors", n).phase == "prefill"]
ALL = {"quest": "budget=4000", "streaming": "budget=4000", "hip": "budget=4000,beam=1"}
ALL |= {"twilight": "budget=4000,top_p=1", "critiprefill": "budget=4000", "sample": "share=1"}
ALL |= {"minference": "budget=4000,first=4"}


FIRST = {"minference": ",first=4"}


class Cache:
    """A paged cache of one layer, its bounds, and the keys and values as they came."""

    def __init__(self, num_blocks=64, seed=0, part=2):
        self.random = torch.Generator().manual_seed(seed)
        self.keys = torch.full((num_blocks, HEADS, BLOCK, DIM), torch.nan)
        self.values = torch.full_like(self.keys, torch.nan)
        self.bounds = BlockBounds(num_blocks, HEADS, DIM, block_size=BLOCK, part=part)
        self.free = torch.randperm(num_blocks, generator=self.random).tolist()
        self.tables, self.plain = [], []

    def add(self, length, *, shared=(), keys=None):
        """A sequence; its first blocks may be those of another. Returns its number."""
        table = [*shared, *(self.free.pop() for _ in range(-(-length // BLOCK) - len(shared)))]
        made = self.draw(length, HEADS, DIM) if keys is None else keys
        values = self.draw(length, HEADS, DIM)
        for place in range(len(shared) * BLOCK):
            block = table[place // BLOCK]
            made[place] = self.keys[block, :, place % BLOCK]
            values[place] = self.values[block, :, place % BLOCK]
        self.tables.append(table)
        self.plain.append((made, values))
        self.write(len(self.tables) - 1, len(shared) * BLOCK, length)
        return len(self.tables) - 1

    def write(self, number, start, end):
        keys, values = self.plain[number]
        places = torch.arange(start, end)
        slots = torch.tensor(self.tables[number])[places // BLOCK] * BLOCK + places % BLOCK
        self.bounds.write(keys[start:end], slots)
        for place, slot in zip(places.tolist(), slots.tolist(), strict=True):
            self.keys[slot // BLOCK, :, slot % BLOCK] = keys[place]
            self.values[slot // BLOCK, :, slot % BLOCK] = values[place]

    def draw(self, *shape):
        return torch.randn(*shape, generator=self.random)

    def batch(self, new, numbers=None):
        """All sequences, of each the last ``new`` tokens being computed."""
        numbers = range(len(self.tables)) if numbers is None else numbers
        tables = [self.tables[n] for n in numbers]
        width = max(map(len, tables))
        padded = torch.tensor([[*t, *[0] * (width - len(t))] for t in tables], dtype=torch.int32)
        lengths = [len(self.plain[n][0]) for n in numbers]
        starts = [0]
        for count in new:
            starts.append(starts[-1] + count)
        return Batch(starts, lengths, padded, BLOCK)

    def dense(self, number, q):
        """q: [new, HEADS, GROUP, DIM] of the last tokens; the same shape."""
        keys, values = self.plain[number]
        out = torch.empty_like(q)
        first = len(keys) - len(q)
        for i in range(len(q)):
            for head in range(HEADS):
                seen = first + i + 1
                weights = (q[i, head] @ keys[:seen, head].T).softmax(-1)
                out[i, head] = weights @ values[:seen, head]
        return out

    def sparse(self, rows, q):
        """What a paged kernel makes of rows; q: [tokens, HEADS, GROUP, DIM]."""
        keys = self.keys.view(-1, BLOCK, DIM)
        values = self.values.view(-1, BLOCK, DIM)
        out = torch.full_like(q, torch.nan)
        for row, (start, end) in enumerate(
            zip(rows.query_starts[:-1].tolist(), rows.query_starts[1:].tolist(), strict=True)
        ):
            length = int(rows.seq_lens[row])
            blocks = rows.table[row, : -(-length // BLOCK)].long()
            k = keys[blocks].flatten(0, 1)[:length]
            v = values[blocks].flatten(0, 1)[:length]
            for i in range(start, end):
                seen = length - (end - 1 - i)
                place = i if rows.places is None else int(rows.places[i])
                token, head = divmod(place, HEADS)
                weights = (q[token, head] @ k[:seen].T).softmax(-1)
                out[token, head] = weights @ v[:seen]
        return out


def rows_of(selector, batch, request, q, cache):
    segments = cut(batch, request, selector.segment, HEADS)
    return prefill_rows(selector, batch, request, q, cache.bounds, segments=segments)


@pytest.mark.parametrize("name", DECODE)
@pytest.mark.parametrize("lengths", [(1,), (3,), (4,), (5,), (37, 8, 1, 100), (64, 63)])
def test_with_room_for_everything_decode_is_dense(name, lengths):
    cache = Cache(128)
    for length in lengths:
        cache.add(length)
    q = cache.draw(len(lengths), HEADS, GROUP, DIM)
    batch = cache.batch([1] * len(lengths))
    selector = make("serving.selectors", f"{name}:{ALL[name]}")
    selection = select_decode(selector, batch, q, cache.bounds)
    found = cache.sparse(decode_rows(batch, selection, HEADS), q)
    for number in range(len(lengths)):
        wanted = cache.dense(number, q[number : number + 1])
        torch.testing.assert_close(found[number : number + 1], wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", PREFILL)
@pytest.mark.parametrize(
    ("length", "new", "segment"),
    [(64, 64, 16), (64, 40, 16), (61, 23, 8), (9, 9, 16), (50, 1, 16), (100, 37, 16), (5, 2, 4)],
)
def test_with_room_for_everything_prefill_is_dense(name, length, new, segment):
    cache = Cache()
    cache.add(length)
    q = cache.draw(new, HEADS, GROUP, DIM)
    batch = cache.batch([new])
    selector = make("serving.selectors", f"{name}:{ALL[name]},segment={segment}")
    found = cache.sparse(rows_of(selector, batch, 0, q, cache), q)
    torch.testing.assert_close(found, cache.dense(0, q), atol=1e-5, rtol=1e-5)


def test_several_requests_go_through_one_call():
    cache = Cache(128)
    for length in (50, 33):
        cache.add(length)
    q = cache.draw(30 + 33, HEADS, GROUP, DIM)
    batch = cache.batch([30, 33])
    selector = make("serving.selectors", "critiprefill:budget=4000,segment=8")
    rows = joined(
        [
            rows_of(selector, batch, 0, q[:30], cache),
            rows_of(selector, batch, 1, q[30:], cache),
        ]
    )
    found = cache.sparse(rows, q)
    torch.testing.assert_close(found[:30], cache.dense(0, q[:30]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[30:], cache.dense(1, q[30:]), atol=1e-5, rtol=1e-5)


def test_a_step_of_prompts_and_decoding_sequences_is_dense_where_there_is_room():
    cache, lengths, new = Cache(128), (50, 33, 70, 5, 41), (30, 1, 1, 5, 12)
    spec = "quest:budget=4000;critiprefill:budget=4000,segment=8;dense_layers=0;from_tokens=20"
    layer = SparseLayer(parse(spec), num_kv_heads=HEADS, group_size=GROUP, head_dim=DIM, scale=1)
    for length in lengths:
        number, places = cache.add(length), torch.arange(length)
        slots = torch.tensor(cache.tables[number])[places // BLOCK] * BLOCK + places % BLOCK
        layer.write(cache.plain[number][0], slots, num_blocks=128, block_size=BLOCK)
    q = cache.draw(sum(new), HEADS, GROUP, DIM)
    batch = cache.batch(new)
    step = Step(batch, last_blocks=[table[-1] for table in cache.tables])
    found = cache.sparse(layer.rows("layers.0", q.flatten(1, 2), step), q)
    for number, (start, end) in enumerate(itertools.pairwise(batch.query_starts)):
        wanted = cache.dense(number, q[start:end])
        torch.testing.assert_close(found[start:end], wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [n for n in DECODE if n != "streaming"])
@pytest.mark.parametrize("planted", [20, 41, 77, 131])
def test_a_planted_key_is_read(name, planted):
    """One key of a long sequence answers one head's query; its block is among the few."""
    cache = Cache(128)
    keys = 0.1 * cache.draw(200, HEADS, DIM)
    direction = torch.zeros(DIM)
    direction[3] = 1.0
    keys[planted, 1] = 9 * direction
    cache.add(200, keys=keys)
    q = 0.1 * cache.draw(1, HEADS, GROUP, DIM)
    q[0, 1, 2] = 4 * direction
    batch = cache.batch([1])
    selector = make("serving.selectors", f"{name}:budget=24,newest=4")
    selection = select_decode(selector, batch, q, cache.bounds)
    chosen = selection.blocks[0, 1, : int(selection.counts[0, 1])].tolist()
    assert planted // BLOCK in chosen
    assert len(chosen) <= 24 // BLOCK + 1
    out = cache.sparse(decode_rows(batch, selection, HEADS), q)
    wanted = cache.dense(0, q)
    torch.testing.assert_close(out[0, 1, 2], wanted[0, 1, 2], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", PREFILL)
def test_a_segment_reads_the_block_that_its_queries_look_for(name):
    cache = Cache(128)
    keys = 0.1 * cache.draw(200, HEADS, DIM)
    direction = torch.zeros(DIM)
    direction[0] = -1.0
    keys[50, 0] = 9 * direction
    cache.add(200, keys=keys)
    q = 0.1 * cache.draw(16, HEADS, GROUP, DIM)
    q[:, 0] = 4 * direction
    selector = make("serving.selectors", f"{name}:budget=24,segment=16{FIRST.get(name, '')}")
    rows = rows_of(selector, cache.batch([16]), 0, q, cache)
    block = cache.tables[0][50 // BLOCK] * HEADS
    assert block in rows.table[0].tolist()
    assert int(rows.seq_lens[0]) <= 24 + 16


@pytest.mark.parametrize("name", DECODE)
def test_the_first_and_the_newest_blocks_are_read_in_order_and_no_block_twice(name):
    cache = Cache(128)
    for length in (200, 90, 3):
        cache.add(length)
    q = cache.draw(3, HEADS, GROUP, DIM)
    batch = cache.batch([1, 1, 1])
    selector = make("serving.selectors", f"{name}:budget=80")
    selection = select_decode(selector, batch, q, cache.bounds)
    for row, length in enumerate((200, 90, 3)):
        for head in range(HEADS):
            chosen = selection.blocks[row, head, : int(selection.counts[row, head])].tolist()
            assert chosen[0] == 0
            assert chosen[-1] == (length - 1) // BLOCK
            assert chosen == sorted(set(chosen))
            assert len(chosen) <= 80 // BLOCK + 1


def test_twilight_reads_few_blocks_where_one_key_has_it_all_and_many_where_all_are_alike():
    cache = Cache(256)
    sharp = 0.01 * cache.draw(400, HEADS, DIM)
    sharp[111] = 5.0
    cache.add(400, keys=sharp)
    cache.add(400, keys=0.01 * cache.draw(400, HEADS, DIM))
    q = torch.ones(2, HEADS, GROUP, DIM)
    selector = make("serving.selectors", "twilight:top_p=0.9,newest=4")
    selection = select_decode(selector, cache.batch([1, 1]), q, cache.bounds)
    assert int(selection.counts[0].max()) <= 4
    assert int(selection.counts[1].min()) >= 80


def test_bounds_hold_every_key_and_are_tight():
    cache = Cache()  # two keys a part
    cache.add(30)
    keys, _ = cache.plain[0]
    low, high = _of(cache.bounds, cache.tables[0])
    for part in range(15):
        pair = keys[2 * part : 2 * part + 2]
        torch.testing.assert_close(low[part], pair.amin(0))
        torch.testing.assert_close(high[part], pair.amax(0))
    low, high = _of(cache.bounds.whole, cache.tables[0])
    torch.testing.assert_close(low[3], keys[12:16].amin(0))
    torch.testing.assert_close(high[3], keys[12:16].amax(0))
    torch.testing.assert_close(low[7], keys[28:].amin(0))  # half of it was never written
    q = cache.draw(1, HEADS, GROUP, DIM)
    bound = upper_bound(q, low[3:4].unsqueeze(0), high[3:4].unsqueeze(0))
    real = torch.einsum("hgd,thd->hgt", q[0], keys[12:16]).amax(-1)
    assert (bound[0, :, :, 0] >= real - 1e-5).all()


@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_shares_are_those_of_keys_between_the_middle_and_the_bound_of_each_part(compiled):
    cache = Cache()
    cache.add(23)
    keys, _ = cache.plain[0]
    q = cache.draw(1, HEADS, GROUP, DIM)
    table, lengths = torch.tensor([cache.tables[0]]), torch.tensor([23])
    cache.bounds.compiled = compiled
    seen = SeenKeys(cache.bounds, table, lengths, BLOCK)
    shares = estimated_shares(q, seen, tightness=0.25)
    wanted = torch.zeros(HEADS, 6)
    for head in range(HEADS):
        for i in range(GROUP):
            scores = []
            for first in range(0, 23, 2):
                part = keys[first : min(first + 2, 23), head]
                middle = (part.amin(0) + part.amax(0)) / 2
                most = torch.where(q[0, head, i] > 0, part.amax(0), part.amin(0))
                scores.append(q[0, head, i] @ (middle + 0.25 * (most - middle)))
            each = torch.stack(scores).softmax(-1)
            wanted[head] += torch.stack([each[2 * b : 2 * b + 2].sum() for b in range(6)]) / GROUP
    torch.testing.assert_close(shares[0], wanted, atol=1e-5, rtol=1e-5)


def test_a_key_between_others_unlike_it_is_found_by_the_bounds_of_parts_only():
    """Keys that point all ways make the bounds of a block wide, and what they say little."""
    keys = torch.zeros(200, HEADS, DIM)
    sides = torch.tensor([1.0, -1.0]).repeat(DIM // 2)
    keys[::4], keys[1::4] = 2 * sides, -2 * sides  # every block may hold anything
    keys[82] = 1.5  # one key answers the query
    found = []
    for part in (4, 1):
        cache = Cache(128, part=part)
        cache.add(200, keys=keys.clone())
        batch = cache.batch([1])
        selector = make("serving.selectors", f"quest:budget=16,newest=4,part={part},tightness=1")
        selection = select_decode(selector, batch, torch.ones(1, HEADS, GROUP, DIM), cache.bounds)
        found.append(82 // BLOCK in selection.blocks[0, 0].tolist())
    assert found == [False, True]


def _of(bounds, table):
    """The bounds of some blocks, [parts, HEADS, DIM] each."""
    low, high = bounds.of(torch.tensor(table).expand(HEADS, -1), Room())
    return low.transpose(0, 1), high.transpose(0, 1)


def _sides(bounds):
    return bounds.key_min, bounds.key_max


@pytest.mark.parametrize("steps", [(30,), (1,) * 30, (5, 1, 1, 4, 8, 11), (4, 4, 22), (29, 1)])
@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_bounds_are_the_same_however_the_keys_come(steps, compiled):
    cache, whole = Cache(seed=3), Cache(seed=3)
    cache.bounds.compiled = compiled
    whole.add(30)
    keys, _ = whole.plain[0]
    cache.tables, start = [whole.tables[0]], 0
    for count in steps:
        places = torch.arange(start, start + count)
        slots = torch.tensor(cache.tables[0])[places // BLOCK] * BLOCK + places % BLOCK
        padded = torch.cat([slots, torch.full((2,), -1)])  # an engine pads
        more = torch.cat([keys[start : start + count], torch.full((2, HEADS, DIM), 99.0)])
        cache.bounds.write(more, padded)
        start += count
    for one, other in zip(_sides(cache.bounds), _sides(whole.bounds), strict=True):
        torch.testing.assert_close(one[whole.tables[0]], other[whole.tables[0]])


def test_a_block_given_to_another_sequence_forgets_its_keys():
    cache = Cache()
    cache.add(16, keys=50 + cache.draw(16, HEADS, DIM))
    cache.free += cache.tables[0]  # preempted
    number = cache.add(12)
    used = [b for b in cache.tables[number] if b in cache.tables[0]]
    assert used
    assert float(_of(cache.bounds.whole, used)[1].max()) < 10


def test_a_shared_prefix_is_known_without_being_computed_again():
    cache = Cache()
    first = cache.add(40)
    cache.add(33, shared=cache.tables[first][:6])
    q = cache.draw(2, HEADS, GROUP, DIM)
    batch = cache.batch([1, 1])
    selector = make("serving.selectors", "quest:budget=4000")
    rows = decode_rows(batch, select_decode(selector, batch, q, cache.bounds), HEADS)
    torch.testing.assert_close(cache.sparse(rows, q)[1:], cache.dense(1, q[1:]))


def test_too_small_a_budget_is_an_error_with_both_numbers():
    with pytest.raises(ValueError, match="1 blocks cannot hold the first 1 and the newest 1"):
        top_blocks(torch.zeros(1, 1, 9), torch.tensor([9]), most=1)
    cache = Cache()
    cache.add(30)
    selector = make("serving.selectors", "streaming:budget=64")
    with pytest.raises(ValueError, match="leaves nothing"):
        select_decode(selector, cache.batch([1]), cache.draw(1, HEADS, GROUP, DIM), cache.bounds)


def test_an_unknown_selector_lists_the_known_ones():
    with pytest.raises(
        UnknownName, match="critiprefill, hip, minference, quest, sample, streaming, twilight"
    ):
        make("serving.selectors", "dense")
    assert math.isclose(make("serving.selectors", "twilight:top_p=0.8").top_p, 0.8)
