"""How many finished attempts are stored in one transaction."""

from typing import Any

import pytest

from trapline.queue.finish import Attempt, TaskResult
from trapline.queue.tasks import NewTask
from trapline.queue.worker.completion_buffer import (
    MOST_CHILDREN_STORED,
    MOST_STORED,
    CompletionBuffer,
)

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
    completions = CompletionBuffer()
    task: Any = None
    for count in children:
        completions.put(
            Attempt(task, result=TaskResult(children=[NewTask("page", None)] * count)), rich=True
        )
    assert len(completions.take_to_store()) == taken
    assert len(completions.rich) == len(children) - taken
    assert completions.settling == taken
