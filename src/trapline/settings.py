"""Settings in groups, and their loader, the only reader of the environment.

Each group is a frozen model; a part of the program takes the groups that it needs. The alias of a field
is its environment variable. `make docs` writes docs/settings.md from here, and a test compares the two.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import platformdirs
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)

from trapline.errors import SettingsError


def _split(value: Any) -> Any:
    """Split a list, which the environment separates by commas."""
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


def _prefixed(prefix: str) -> ConfigDict:
    """Name the variable of each field that has no alias of its own."""
    name: Callable[[str], str] = lambda field_name: prefix + field_name.upper()  # noqa: E731
    return ConfigDict(alias_generator=name)


Network = Annotated[
    IPv4Network | IPv6Network, BeforeValidator(lambda v: ip_network(v, strict=False))
]
Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://")]
# Two groups need it.
_HOME: Any = Field(
    default_factory=lambda: Path(platformdirs.user_data_dir("trapline", appauthor=False)),
    validation_alias="TRAPLINE_HOME",
    description="Directory of the embedded PostgreSQL and of local files.",
)


class Group(BaseModel):
    """Settings of one part of the program. Frozen: a change needs a restart."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True) | _prefixed(
        "TRAPLINE_"
    )

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the environment variable that sets a field."""
        alias = cls.model_fields[name].validation_alias
        return str(alias.choices[0] if isinstance(alias, AliasChoices) else alias)


class DatabaseSettings(Group):
    """The database."""

    model_config = _prefixed("DB_")

    home: Path = _HOME
    url: SecretStr | None = Field(
        default=None,
        validation_alias="DATABASE_URL",
        description="An external PostgreSQL 15 or newer. Without it Trapline runs its own.",
    )
    host: str | None = Field(
        default=None, description="Host of an external PostgreSQL, when there is no DATABASE_URL."
    )
    port: int = Field(default=5432, ge=1, le=65535, description="Its port.")
    user: str | None = Field(default=None, description="Its user.")
    password: SecretStr | None = Field(default=None, description="Its password.")
    name: str = Field(default="trapline", description="Its database.")
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = Field(
        default="prefer", description="How its connection is encrypted."
    )
    pool_size: int = Field(
        default=12,
        ge=2,
        le=1000,
        validation_alias="TRAPLINE_POOL_SIZE",
        description="Most connections that one process opens, over all of its pools.",
    )
    connection_max_age: float = Field(
        default=300.0,
        gt=0,
        validation_alias="TRAPLINE_CONNECTION_MAX_AGE",
        description="Seconds after which a pooled connection is replaced.",
    )
    connection_max_idle: float = Field(
        default=120.0,
        gt=0,
        validation_alias="TRAPLINE_CONNECTION_MAX_IDLE",
        description="Seconds after which an idle pooled connection is closed.",
    )
    statement_timeout: float = Field(
        default=60.0,
        gt=0,
        validation_alias="TRAPLINE_STATEMENT_TIMEOUT",
        description="Seconds that a statement may take.",
    )
    idle_in_transaction_timeout: float = Field(
        default=30.0,
        gt=0,
        validation_alias="TRAPLINE_IDLE_IN_TRANSACTION_TIMEOUT",
        description="Seconds that an open transaction may sit idle.",
    )
    maintenance_timeout: float = Field(
        default=3600.0,
        gt=0,
        validation_alias="TRAPLINE_MAINTENANCE_TIMEOUT",
        description="Seconds that a statement of a migration, an index build or an audit may take.",
    )

    def external_dsn(self) -> str | None:
        """Return the URL of the external PostgreSQL, or None when Trapline runs its own."""
        if self.url is not None:
            return self.url.get_secret_value()
        if self.host is None:
            return None
        user = quote(self.user or "", safe="")
        if self.password is not None:
            user += ":" + quote(self.password.get_secret_value(), safe="")
        credentials = f"{user}@" if user else ""
        return (
            f"postgresql://{credentials}{self.host}:{self.port}/{quote(self.name, safe='')}"
            f"?sslmode={self.sslmode}"
        )


class BlobSettings(Group):
    """Raw bytes."""

    location: str = Field(
        default="db:",
        pattern=r"^(db:|file:.+|s3://.+)$",
        validation_alias="TRAPLINE_BLOBS",
        description="Where raw bytes are stored: `db:`, `file:/a/directory` or `s3://bucket/prefix`.",
    )
    previous_location: str | None = Field(
        default=None,
        pattern=r"^(file:.+|s3://.+)$",
        validation_alias="TRAPLINE_BLOBS_BEFORE",
        description="Where they were stored before; they are read from there until"
        " `trapline blobs move` has moved them.",
    )
    grace_hours: float = Field(
        default=24.0,
        ge=2.0,
        validation_alias="TRAPLINE_BLOB_GRACE_HOURS",
        description="Hours that raw bytes are kept after the last reference to them is gone.",
    )
    s3_endpoint: str | None = Field(
        default=None,
        validation_alias="AWS_ENDPOINT_URL",
        description="Address of the object store; Amazon's if not set.",
    )
    s3_region: str | None = Field(
        default=None, validation_alias="AWS_REGION", description="Its region."
    )
    s3_access_key: SecretStr | None = Field(
        default=None, validation_alias="AWS_ACCESS_KEY_ID", description="Its access key."
    )
    s3_secret_key: SecretStr | None = Field(
        default=None, validation_alias="AWS_SECRET_ACCESS_KEY", description="Its secret key."
    )


class ServerSettings(Group):
    """The server."""

    host: str = Field(default="127.0.0.1", description="Address that `trapline serve` binds.")
    port: int = Field(default=3002, ge=0, le=65535, description="Port that `trapline serve` binds.")
    path_prefix: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*$")] = Field(
        default="",
        description="Path under which a proxy serves Trapline, such as `/trapline`. The proxy may strip it or not.",
    )
    admin_key: SecretStr | None = Field(
        default=None,
        description="Key of the server's administrator, who sees all organisations. Without it `/admin/reset-db` does not exist.",
    )
    rate_limit: int | None = Field(
        default=None,
        ge=1,
        description="Requests a minute that one server accepts from one API key; no limit if not set.",
    )
    answer_first: bool = Field(
        default=True,
        description="Answer a scrape over HTTP as soon as its page is extracted, and store it within a"
        " fraction of a second. If false, store it before answering.",
    )
    changedetection_secret: SecretStr | None = Field(
        default=None,
        description="Master secret: each organisation's secret for changedetection.io's reports is"
        " derived from it (GET /api/webhooks/changedetection). Without it reports are refused.",
    )
    redis_url: SecretStr | None = Field(
        default=None,
        validation_alias="REDIS_URL",
        description="A Redis or Valkey. Nothing is stored in it yet: `/health` and `trapline doctor` say whether it answers.",
    )


class FetchSettings(Group):
    """Fetching."""

    model_config = _prefixed("TRAPLINE_FETCH_")

    allow_nets: Annotated[tuple[Network, ...], BeforeValidator(_split)] = Field(
        default=(),
        validation_alias="TRAPLINE_ALLOW_NETS",
        description="Comma-separated private address ranges that may be fetched all the same.",
    )
    resolve: Names = Field(
        default=(),
        validation_alias="TRAPLINE_RESOLVE",
        description="Comma-separated host:port:address, as curl's --resolve, to pin names.",
    )
    user_agent: str = Field(
        default="Mozilla/5.0 (compatible; Trapline/0.1)",
        validation_alias="TRAPLINE_USER_AGENT",
        description="User-Agent of the crawler; robots.txt is matched against its product token.",
    )
    proxy: SecretStr | None = Field(
        default=None,
        validation_alias="TRAPLINE_PROXY",
        description="HTTP proxy for every fetch, http://user:password@host:port; a job may name another.",
    )
    connections: int = Field(
        default=256, ge=1, description="Most connections to websites that one process holds."
    )
    body_bytes: int = Field(
        default=32 * 2**20, ge=1, description="Most bytes of a response body on the wire."
    )
    decompressed_bytes: int = Field(
        default=64 * 2**20, ge=1, description="Most bytes of a response body once decompressed."
    )
    header_bytes: int = Field(
        default=64 * 2**10, ge=1024, description="Most bytes of a response's headers."
    )
    redirects: int = Field(default=10, ge=0, description="Most redirects in one fetch.")
    connect_timeout: float = Field(
        default=10.0, gt=0, description="Seconds to resolve a name and connect, with TLS."
    )
    first_byte_timeout: float = Field(
        default=30.0, gt=0, description="Seconds until the response's headers have arrived."
    )
    total_timeout: float = Field(
        default=120.0, gt=0, description="Seconds for a whole fetch, with all its redirects."
    )


class BrowserSettings(Group):
    """The browser."""

    model_config = _prefixed("TRAPLINE_BROWSER_")

    location: str | None = Field(
        default=None,
        min_length=1,
        validation_alias="TRAPLINE_BROWSER",
        description="The browser for pages that scripts fill: a program, or the DevTools address"
        " (ws://…) of one that runs elsewhere, or `none`. Without it, the lightest Chromium that is"
        " installed.",
    )
    processes: int = Field(
        default=1, ge=1, le=16, description="Most browsers that one process runs at a time."
    )
    tabs: int = Field(
        default=8, ge=1, le=100, description="Most pages that they show at a time, together."
    )
    user: str = Field(
        default="nobody",
        description="User that the browser runs as when Trapline itself runs as root.",
    )
    page_seconds: float = Field(
        default=60.0, gt=0, le=600, description="Seconds that a page may take in the browser."
    )
    ready_seconds: float = Field(
        default=8.0,
        gt=0,
        le=120,
        description="Seconds after which a page that does not come to rest is read as it is.",
    )
    page_requests: int = Field(
        default=1000, ge=1, description="Most requests that one page may send."
    )
    page_bytes: int = Field(
        default=64 * 2**20, ge=2**10, description="Most bytes that one page may transfer."
    )
    page_memory_mb: int = Field(
        default=1024, ge=64, description="Memory at which the renderer of a page is killed."
    )
    process_memory_mb: int = Field(
        default=3072, ge=256, description="Memory at which a browser is replaced."
    )
    process_pages: int = Field(
        default=1000, ge=1, description="Pages after which a browser is replaced."
    )
    process_seconds: float = Field(
        default=3600.0, gt=0, description="Seconds after which a browser is replaced."
    )


class CrawlSettings(Group):
    """Politeness and recrawls."""

    host_gap: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="Least seconds between two requests to a host, divided by the requests in flight;"
        " a slow host gets a longer gap.",
    )
    retry_after_most: float = Field(
        default=600.0,
        ge=0,
        le=86_400,
        description="Most seconds that a host is left alone because one of its URLs answers with"
        " Retry-After; the URL itself waits up to a day.",
    )
    recrawl_least_hours: float = Field(
        default=24.0, gt=0, description="Hours after which a page that always changes is due again."
    )
    recrawl_most_hours: float = Field(
        default=720.0, gt=0, description="Hours after which a page that never changes is due again."
    )


class LlmSettings(Group):
    """Language model."""

    model_config = _prefixed("TRAPLINE_LLM_")

    url: HttpUrl | None = Field(
        default=None,
        description="An OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1. Without it"
        " the formats json and question are refused, and summaries consist of the page's own"
        " sentences.",
    )
    key: SecretStr | None = Field(default=None, description="Its API key.")
    model: str = Field(default="gpt-4o-mini", description="The model to use there.")
    timeout: float = Field(default=60.0, gt=0, description="Seconds that a request to it may take.")
    input_tokens: int = Field(
        default=60_000, ge=100, description="Most tokens of a page that are sent to it."
    )
    output_tokens: int = Field(
        default=4_096, ge=16, description="Most tokens that it may answer with."
    )


class WebSearchSettings(Group):
    """Web search."""

    searxng_url: HttpUrl | None = Field(
        default=None,
        description="A SearXNG with the JSON format enabled, which web search asks. Without it, web"
        " search covers the pages that Trapline has stored.",
    )


class UploadSettings(Group):
    """Uploads."""

    model_config = _prefixed("TRAPLINE_UPLOAD_")

    file_bytes: int = Field(
        default=100 * 2**20,
        ge=1,
        validation_alias="TRAPLINE_UPLOAD_BYTES",
        description="Most bytes of one uploaded file.",
    )
    files: int = Field(default=10_000, ge=1, description="Most files in one upload.")
    large_file_bytes: int = Field(
        default=2**20,
        ge=1,
        validation_alias="TRAPLINE_LARGE_FILE_BYTES",
        description="Size from which files wait in a lane of their own, so that small ones overtake"
        " them.",
    )


class ParserSettings(Group):
    """External parser."""

    model_config = _prefixed("TRAPLINE_PARSER_")

    url: HttpUrl | None = Field(
        default=None,
        description="An external parser that files are posted to; if it cannot read one, Trapline's"
        " own parser does. See docs/ingestion.md.",
    )
    types: Names = Field(
        default=("pdf",),
        description="Comma-separated kinds of files to send to it, such as pdf,docx,image.",
    )
    key: SecretStr | None = Field(default=None, description="Its API key.")
    timeout: float = Field(
        default=120.0, gt=0, le=3600, description="Seconds that it may take for a file."
    )
    file_bytes: int = Field(
        default=50 * 2**20,
        ge=1,
        validation_alias="TRAPLINE_PARSER_BYTES",
        description="Largest file that is sent to it.",
    )
    answer_bytes: int = Field(
        default=32 * 2**20, ge=1, description="Most bytes that it may answer with."
    )
    concurrency: int = Field(
        default=4, ge=1, le=100, description="Most files that one process sends to it at a time."
    )


class EmbeddingSettings(Group):
    """Passages and embeddings."""

    model_config = _prefixed("TRAPLINE_EMBED_")

    home: Path = _HOME
    chunk_tokens: int = Field(
        default=256,
        ge=16,
        le=8000,
        validation_alias="TRAPLINE_CHUNK_TOKENS",
        description="Most tokens of a passage, for new sources.",
    )
    chunk_overlap: int = Field(
        default=50,
        ge=0,
        validation_alias="TRAPLINE_CHUNK_OVERLAP",
        description="Tokens that a passage repeats from the one before.",
    )
    onnx: str | None = Field(
        default=None,
        min_length=1,
        description="A sentence model on onnxruntime (trapline[minilm]) for embeddings: `minilm`, once"
        " `trapline models install minilm` was run, or a directory with model.onnx and"
        " tokenizer.json.",
    )
    threads: int = Field(default=1, ge=1, le=64, description="Threads that it uses in one process.")
    url: HttpUrl | None = Field(
        default=None,
        description="An OpenAI-compatible endpoint for embeddings, such as http://127.0.0.1:11434/v1."
        " It takes precedence over the model on onnxruntime; without either, new sources are embedded"
        " with the light model that is installed.",
    )
    key: SecretStr | None = Field(default=None, description="Its API key.")
    model: str = Field(default="text-embedding-3-small", description="The model to use there.")
    dimensions: int = Field(
        default=1536, ge=1, le=4000, description="Dimensions of that model's vectors."
    )
    batch: int = Field(default=64, ge=1, le=2048, description="Most texts in one request to it.")
    concurrency: int = Field(
        default=4, ge=1, le=100, description="Most requests that one process makes to it at a time."
    )
    timeout: float = Field(default=60.0, gt=0, description="Seconds that a request to it may take.")


class VectorSettings(Group):
    """Vector search."""

    qdrant_url: str | None = Field(
        default=None,
        validation_alias="QDRANT_URL",
        description="A Qdrant that vectors are copied to and searched in, such as"
        " http://127.0.0.1:6333. Without it they are searched in PostgreSQL.",
    )
    qdrant_key: SecretStr | None = Field(
        default=None, validation_alias="QDRANT_API_KEY", description="Its API key."
    )
    qdrant_timeout: float = Field(
        default=5.0, gt=0, description="Seconds that a request to it may take."
    )
    qdrant_fallback: bool = Field(
        default=True,
        description="While Qdrant does not answer, search vectors in PostgreSQL, which keeps indexes"
        " for that. If false, such a search fails, and no indexes are built.",
    )
    index_memory_mb: int = Field(
        default=1024,
        ge=64,
        description="Most megabytes that PostgreSQL may use while it builds an index over vectors.",
    )


class WebhookSettings(Group):
    """Outgoing webhooks."""

    secret: SecretStr | None = Field(
        default=None,
        validation_alias="TRAPLINE_WEBHOOK_SECRET",
        description="Signs every webhook: X-Firecrawl-Signature is the HMAC-SHA256 of its body.",
    )
    allow_local: bool = Field(
        default=False,
        validation_alias=AliasChoices("TRAPLINE_ALLOW_LOCAL_WEBHOOKS", "ALLOW_LOCAL_WEBHOOKS"),
        description="Whether webhooks may go to private addresses too.",
    )


class RemoteFirecrawlSettings(Group):
    """Remote Firecrawl."""

    model_config = _prefixed("FIRECRAWL_")

    url: HttpUrl | None = Field(
        default=None,
        validation_alias="FIRECRAWL_API_URL",
        description="A remote Firecrawl, which crawls the sources with the provider firecrawl.",
    )
    key: SecretStr | None = Field(
        default=None, validation_alias="FIRECRAWL_API_KEY", description="Its API key."
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Secret of a Firecrawl account whose webhooks /api/webhooks/firecrawl accepts;"
        " without it none are accepted.",
    )
    public_url: HttpUrl | None = Field(
        default=None,
        validation_alias="TRAPLINE_PUBLIC_URL",
        description="Where that Firecrawl reaches this server with its webhooks.",
    )


class QueueSettings(Group):
    """The queue and schedules."""

    lease_seconds: float = Field(
        default=60.0, gt=0, description="How long a worker holds a task without renewing its lease."
    )
    lease_renewal_seconds: float = Field(
        default=15.0,
        gt=0,
        description="How often a worker renews its leases; at least four times in a lease.",
    )
    stale_sweep_seconds: float = Field(
        default=15.0, gt=0, description="How often tasks with expired leases are requeued."
    )
    most_stalls: int = Field(
        default=9,
        ge=0,
        le=1000,
        description="How often a task may lose its worker before it fails.",
    )
    reindex_bytes: int = Field(
        default=64 * 2**20,
        ge=2**20,
        description="Size from which a bloated index of the queue is rebuilt.",
    )
    catch_up_seconds: float = Field(
        default=3600.0,
        ge=0,
        le=7 * 86400,
        description="How late a missed tick of a schedule still creates its job; later ones are skipped.",
    )


class RetentionSettings(Group):
    """How long things are kept."""

    job_ttl_seconds: float = Field(
        default=24 * 3600, gt=0, description="How long a job is kept after its end."
    )
    scrape_ttl_seconds: float = Field(
        default=3600, gt=0, description="How long the job of a single scrape is kept."
    )
    scrape_failed_ttl_seconds: float = Field(
        default=6 * 3600,
        gt=0,
        description="How long the job of a single scrape that failed is kept.",
    )
    expiry_seconds: float = Field(
        default=60.0, gt=0, description="How often expired jobs are deleted."
    )
    keep_days: int = Field(
        default=90, ge=1, description="Days that logs, statistics and ended agents are kept."
    )
    keep_gates_days: int = Field(
        default=30,
        ge=1,
        description="Days that the pace of a host is remembered after its last use.",
    )
    export_logs: Path | None = Field(
        default=None,
        description="Directory where logs are written as JSON lines before they are dropped.",
    )
    keep_versions: int | None = Field(
        default=None, ge=1, description="Versions of a page that are kept; all if not set."
    )
    keep_version_days: int | None = Field(
        default=None,
        ge=1,
        description="Days that a version is kept after its replacement; for ever if not set.",
    )


class LogSettings(Group):
    """Logs of the process."""

    model_config = _prefixed("TRAPLINE_LOG_")

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe log line that is written."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, JSON elsewhere."
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups, as the parts of the program are given them."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    blobs: BlobSettings = field(default_factory=BlobSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    web_search: WebSearchSettings = field(default_factory=WebSearchSettings)
    uploads: UploadSettings = field(default_factory=UploadSettings)
    parser: ParserSettings = field(default_factory=ParserSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    vectors: VectorSettings = field(default_factory=VectorSettings)
    firecrawl: RemoteFirecrawlSettings = field(default_factory=RemoteFirecrawlSettings)
    queue: QueueSettings = field(default_factory=QueueSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    logs: LogSettings = field(default_factory=LogSettings)

    @classmethod
    def groups(cls) -> dict[str, type[Group]]:
        """Return the model of each group by its name."""
        return {each.name: each.type for each in fields(cls)}  # type: ignore[misc]

    @classmethod
    def load(cls, environment: Mapping[str, object] = os.environ) -> Self:
        """Read the environment; an error names the variable that has the wrong value."""
        # An empty variable is an unset one; their case does not count.
        values = {name.upper(): value for name, value in environment.items() if value != ""}
        try:
            return cls(**{name: kind.model_validate(values) for name, kind in cls.groups().items()})  # type: ignore[arg-type]
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(f"{first['loc'][0]}: {first['msg']}") from None
