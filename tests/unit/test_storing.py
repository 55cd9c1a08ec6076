"""How many finished attempts are stored in one transaction."""

from typing import Any

from trapline.queue.finishing import Attempt
from trapline.queue.tasks import NewTask
from trapline.queue.worker import MOST_CHILDREN_STORED, MOST_STORED, _batch


def attempts(*children: int) -> list[Attempt]:
    task: Any = None
    return [Attempt(task, children=[NewTask("page", None)] * count) for count in children]


def test_a_batch_is_bounded_by_attempts_and_by_their_children() -> None:
    assert len(_batch(attempts(*[0] * (MOST_STORED + 50)))) == MOST_STORED
    half = MOST_CHILDREN_STORED // 2
    assert len(_batch(attempts(half, half, 1, 0))) == 2
    # One with more than that still gets through, alone.
    assert len(_batch(attempts(MOST_CHILDREN_STORED * 10, 0))) == 1
    assert len(_batch(attempts(1, MOST_CHILDREN_STORED * 10, 0))) == 1
    assert _batch([]) == []
