"""The views: one module for each part of the navigation, each a router."""

from typing import Final

from trapline.dashboard.views import (
    changes,
    dead_letters,
    duplicates,
    hosts,
    jobs,
    operation,
    organisation,
    overview,
    pages,
    playground,
    schedules,
    search,
    share,
    sign_in,
    sites,
    sources,
    tasks,
    webhooks,
)

ROUTERS: Final = (
    overview.router,
    sign_in.router,
    jobs.router,
    tasks.router,
    sites.router,
    pages.router,
    changes.router,
    duplicates.router,
    hosts.router,
    dead_letters.router,
    webhooks.router,
    schedules.router,
    sources.router,
    search.router,
    playground.router,
    organisation.router,
    operation.router,
    share.router,
)
