"""FastAPI dependencies on the services of this process."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from trapline.api.services import Services
from trapline.errors import Unavailable


def services_of(connection: HTTPConnection) -> Services:
    """Return the services; Unavailable where no worker runs in this process."""
    services: Services | None = connection.app.state.services
    if services is None:
        raise Unavailable("This process answers requests, but it runs no worker.")
    return services


def notify_ready(connection: HTTPConnection) -> None:
    """Wake the workers if one runs in this process; workers elsewhere poll."""
    services: Services | None = connection.app.state.services
    if services is not None:
        services.notifier.notify(ready=True)


async def _services(connection: HTTPConnection) -> Services:
    # A coroutine: FastAPI would run a plain function in a thread.
    return services_of(connection)


CurrentServices = Annotated[Services, Depends(_services)]
