"""How many finished attempts are stored in one transaction."""

from typing import Any

import pytest

from trapline.queue.finishing import Attempt
from trapline.queue.outbox import MOST_CHILDREN_STORED, MOST_STORED, Outbox
from trapline.queue.tasks import NewTask

HALF = MOST_CHILDREN_STORED // 2


@pytest.mark.parametrize(
    ("children", "taken"),
    [
        ([0] * (MOST_STORED + 50), MOST_STORED),
        ([HALF, HALF, 1, 0], 2),
        # One with more than that still gets through, alone.
        ([MOST_CHILDREN_STORED * 10, 0], 1),
        ([1, MOST_CHILDREN_STORED * 10, 0], 1),
        ([], 0),
    ],
)
def test_a_batch_is_bounded_by_attempts_and_by_their_children(
    children: list[int], taken: int
) -> None:
    outbox = Outbox()
    task: Any = None
    for count in children:
        outbox.put(Attempt(task, children=[NewTask("page", None)] * count), rich=True)
    assert len(outbox.take_rich()) == taken
    assert len(outbox.rich) == len(children) - taken
    assert outbox.settling == taken
