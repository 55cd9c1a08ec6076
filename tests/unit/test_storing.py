"""How many finished attempts are stored in one transaction."""

from typing import Any

from trapline.queue.finishing import Attempt
from trapline.queue.outbox import MOST_CHILDREN, Outbox
from trapline.queue.tasks import NewTask


def taken(most: int, *children: int) -> list[int]:
    """Put attempts with so many children, and take batches until nothing is left."""
    task: Any = None
    outbox = Outbox()
    for count in children:
        outbox.put(Attempt(task, children=[NewTask("page", None)] * count), rich=True)
    sizes = []
    while outbox.rich:
        sizes.append(len(outbox.take_rich(most)))
    assert outbox.settling == sum(sizes) == len(children)
    return sizes


def test_a_batch_is_bounded_by_attempts_and_by_their_children() -> None:
    assert taken(200, *[0] * 250) == [200, 50]
    half = MOST_CHILDREN // 2
    assert taken(200, half, half, 1, 0) == [2, 2]
    # One with more than that still gets through, alone.
    assert taken(200, MOST_CHILDREN * 10, 0) == [1, 1]
    assert taken(200, 1, MOST_CHILDREN * 10, 0) == [1, 1, 1]
    assert taken(200) == []
