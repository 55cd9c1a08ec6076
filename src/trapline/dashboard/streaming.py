"""Server-sent events of the dashboard."""

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse


def event_stream(messages: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(
        messages,
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
