from app.batch.leading import Queue
from app.batch.plan import about, planned
from app.batch.questions import Row


def rows(*documents):
    return [Row(n, str(n), "?", (name,)) for n, name in enumerate(documents)]


def serve(queue, *, at_once):
    """Rows as they were begun, and how often a prompt's beginning was computed."""
    running, order, computed, cached = [], [], 0, set()
    while True:
        while len(running) < at_once and (row := queue.take()) is not None:
            running.append(row)
            order.append(row.number)
            computed += about(row) not in cached  # what is at work is in no cache yet
        if not running:
            return order, computed
        done = running.pop(0)
        cached.add(about(done))
        queue.done(done)


def test_the_first_row_about_a_document_goes_alone_and_the_others_follow():
    asked = rows("a", "a", "a", "b", "b", "c")
    queue = Queue(iter(asked), one_ahead=True)
    assert [queue.take().number, queue.take().number, queue.take().number] == [0, 3, 5]
    assert queue.take() is None
    queue.done(asked[0])
    assert [queue.take().number, queue.take().number] == [1, 2]
    assert queue.take() is None
    queue.done(asked[3])
    assert queue.take().number == 4
    assert queue.take() is None


def test_each_beginning_is_computed_once_however_many_rows_are_at_work():
    asked = rows(*(str(n % 50) for n in range(500)))
    order, computed = serve(Queue(planned(asked, about), one_ahead=True), at_once=16)
    assert sorted(order) == list(range(500))
    assert computed == 50
    _, without = serve(Queue(planned(asked, about), one_ahead=False), at_once=16)
    assert without > 250


def test_where_one_request_is_computed_at_a_time_the_plans_order_stays():
    asked = rows("a", "b", "a", "b")
    order, _ = serve(Queue(planned(asked, about), one_ahead=False), at_once=2)
    assert order == [0, 2, 1, 3]


def test_no_more_rows_are_read_than_wait_and_all_are_asked():
    read = []
    many = (read.append(n) or Row(n, str(n), "?", ("a",)) for n in range(5_000))
    queue = Queue(many, one_ahead=True)
    first = queue.take()
    assert queue.take() is None
    assert len(read) == 1_001
    queue.done(first)
    order, _ = serve(queue, at_once=8)
    assert order == list(range(1, 5_000))
