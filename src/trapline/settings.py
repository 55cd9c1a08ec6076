"""One Settings object; the only reader of the environment.

Every field is documented in docs/settings.md, and a test compares the two.
"""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import platformdirs
from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from trapline.errors import SettingsError


def _split(value: Any) -> Any:
    """Lists are comma-separated in the environment, not JSON."""
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


Network = Annotated[
    IPv4Network | IPv6Network, BeforeValidator(lambda v: ip_network(v, strict=False))
]


class Settings(BaseSettings):
    """How this process runs. Frozen: a change needs a restart."""

    model_config = SettingsConfigDict(
        frozen=True,
        env_prefix="TRAPLINE_",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
    )

    # Where things are
    home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("trapline", appauthor=False)),
        description="Directory of the embedded PostgreSQL and of local files.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("DATABASE_URL", "database_url"),
        description="An external PostgreSQL 15 or newer. Without it Trapline runs its own.",
    )
    db_host: str | None = Field(
        default=None,
        validation_alias=AliasChoices("DB_HOST", "db_host"),
        description="Host of an external PostgreSQL, when there is no DATABASE_URL.",
    )
    db_port: int = Field(
        default=5432,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("DB_PORT", "db_port"),
        description="Its port.",
    )
    db_user: str | None = Field(
        default=None,
        validation_alias=AliasChoices("DB_USER", "db_user"),
        description="Its user.",
    )
    db_password: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("DB_PASSWORD", "db_password"),
        description="Its password.",
    )
    db_name: str = Field(
        default="trapline",
        validation_alias=AliasChoices("DB_NAME", "db_name"),
        description="Its database.",
    )
    db_sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = (
        Field(
            default="prefer",
            validation_alias=AliasChoices("DB_SSLMODE", "db_sslmode"),
            description="How its connection is encrypted.",
        )
    )
    redis_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("REDIS_URL", "redis_url"),
        description="A Redis or Valkey. Nothing is kept in it yet: `/health` and `trapline doctor` say whether it answers.",
    )

    blobs: str = Field(
        default="db:",
        pattern=r"^(db:|file:.+|s3://.+)$",
        description="Where raw bytes are kept: `db:`, `file:/a/directory` or `s3://bucket/prefix`.",
    )
    blobs_before: str | None = Field(
        default=None,
        pattern=r"^(file:.+|s3://.+)$",
        description="Where they were kept before, and are read from until `trapline blobs move` is done.",
    )
    s3_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_ENDPOINT_URL", "s3_endpoint"),
        description="Address of the object store; Amazon's if not set.",
    )
    s3_region: str | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_REGION", "s3_region"),
        description="Its region.",
    )
    s3_access_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_ACCESS_KEY_ID", "s3_access_key"),
        description="Its access key.",
    )
    s3_secret_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_SECRET_ACCESS_KEY", "s3_secret_key"),
        description="Its secret key.",
    )

    blob_grace_hours: float = Field(
        default=24.0,
        ge=2.0,
        description="Hours that raw bytes are kept after the last thing that names them is gone.",
    )

    # Connections
    pool_size: int = Field(
        default=12,
        ge=2,
        le=1000,
        description="Most connections that one process opens, over all of its pools.",
    )
    connection_max_age: float = Field(
        default=300.0, gt=0, description="Seconds after which a pooled connection is replaced."
    )
    connection_max_idle: float = Field(
        default=120.0, gt=0, description="Seconds after which an idle pooled connection is closed."
    )
    statement_timeout: float = Field(
        default=60.0, gt=0, description="Seconds that a statement may take."
    )
    idle_in_transaction_timeout: float = Field(
        default=30.0, gt=0, description="Seconds that an open transaction may sit idle."
    )
    maintenance_timeout: float = Field(
        default=3600.0,
        gt=0,
        description="Seconds that a statement of a migration, an index build or an audit may take.",
    )

    # Server
    host: str = Field(default="127.0.0.1", description="Address that `trapline serve` binds.")
    port: int = Field(default=3002, ge=0, le=65535, description="Port that `trapline serve` binds.")
    admin_key: SecretStr | None = Field(
        default=None,
        description="Key of the server's administrator, who sees all organisations. Without it `/admin/reset-db` does not exist.",
    )

    changedetection_secret: SecretStr | None = Field(
        default=None,
        description="What the secrets for changedetection.io's reports are made from, one for each"
        " organisation (GET /api/webhooks/changedetection); without it no report is taken.",
    )

    firecrawl_webhook_secret: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("FIRECRAWL_WEBHOOK_SECRET", "firecrawl_webhook_secret"),
        description="Secret of a Firecrawl account whose webhooks are taken in at"
        " /api/webhooks/firecrawl; without it none is.",
    )

    firecrawl_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        validation_alias=AliasChoices("FIRECRAWL_API_URL", "firecrawl_url"),
        description="A Firecrawl elsewhere that sources with the provider firecrawl are crawled by.",
    )
    firecrawl_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("FIRECRAWL_API_KEY", "firecrawl_key"),
        description="Its API key.",
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Where this server is reached from elsewhere; webhooks of that Firecrawl go there.",
    )

    rate_limit: int | None = Field(
        default=None,
        ge=1,
        description="Requests a minute that one API key may make of one server; none: no limit.",
    )
    answer_first: bool = Field(
        default=True,
        description="Answer a scrape over HTTP as soon as its page is read, and store it within a"
        " fraction of a second; if not, store it before.",
    )

    # Network safety
    allow_nets: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Comma-separated address ranges that may be fetched although they are private.",
    )
    resolve: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Comma-separated host:port:address, as curl's --resolve, to pin names.",
    )

    # Fetching
    user_agent: str = Field(
        default="Mozilla/5.0 (compatible; Trapline/0.1)",
        description="What the crawler calls itself; its product token is what robots.txt names.",
    )
    proxy: SecretStr | None = Field(
        default=None,
        description="HTTP proxy for every fetch, http://user:password@host:port; a job may name another.",
    )
    fetch_connections: int = Field(
        default=256, ge=1, description="Most connections to websites that one process holds."
    )
    fetch_body_bytes: int = Field(
        default=32 * 2**20, ge=1, description="Most bytes of a body as it is sent."
    )
    fetch_decompressed_bytes: int = Field(
        default=64 * 2**20, ge=1, description="Most bytes of a body once it is decompressed."
    )
    fetch_header_bytes: int = Field(
        default=64 * 2**10, ge=1024, description="Most bytes of an answer's headers."
    )
    fetch_redirects: int = Field(default=10, ge=0, description="Most redirects in one fetch.")
    fetch_connect_timeout: float = Field(
        default=10.0, gt=0, description="Seconds to resolve a name and connect, with TLS."
    )
    fetch_first_byte_timeout: float = Field(
        default=30.0, gt=0, description="Seconds until an answer's headers are there."
    )
    fetch_total_timeout: float = Field(
        default=120.0, gt=0, description="Seconds for a whole fetch, with all its redirects."
    )

    # Webhooks
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Signs every webhook: X-Firecrawl-Signature is the HMAC-SHA256 of its body.",
    )
    allow_local_webhooks: bool = Field(
        default=False,
        validation_alias=AliasChoices(
            "TRAPLINE_ALLOW_LOCAL_WEBHOOKS", "ALLOW_LOCAL_WEBHOOKS", "allow_local_webhooks"
        ),
        description="Whether webhooks may go to private addresses too.",
    )

    # Language model and web search
    llm_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="An OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1. Without it"
        " the formats json and question are refused, and summaries are made of the page's own"
        " sentences.",
    )
    llm_key: SecretStr | None = Field(default=None, description="Its API key.")
    llm_model: str = Field(default="gpt-4o-mini", description="Which of its models is asked.")
    llm_timeout: float = Field(default=60.0, gt=0, description="Seconds that it may take.")
    llm_input_tokens: int = Field(
        default=60_000, ge=100, description="Most tokens of a page that it is given."
    )
    llm_output_tokens: int = Field(
        default=4_096, ge=16, description="Most tokens that it may answer with."
    )
    searxng_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="A SearXNG with the JSON format on; web search asks it.",
    )

    # Ingestion
    upload_bytes: int = Field(
        default=100 * 2**20, ge=1, description="Most bytes of one uploaded file."
    )
    upload_files: int = Field(
        default=10_000, ge=1, description="Most files that one upload may have."
    )
    large_file_bytes: int = Field(
        default=2**20,
        ge=1,
        description="Size from which files wait in a line of their own, so that small ones need not.",
    )
    chunk_tokens: int = Field(
        default=256, ge=16, le=8000, description="Most tokens of a passage of new sources."
    )
    chunk_overlap: int = Field(
        default=50, ge=0, description="Tokens that a passage repeats of the one before."
    )

    qdrant_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("QDRANT_URL", "qdrant_url"),
        description="A Qdrant that vectors are copied to and searched in, such as"
        " http://127.0.0.1:6333. Without it they are searched in PostgreSQL.",
    )
    qdrant_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("QDRANT_API_KEY", "qdrant_key"),
        description="Its API key.",
    )
    qdrant_timeout: float = Field(default=5.0, gt=0, description="Seconds that it may take.")
    qdrant_fallback: bool = Field(
        default=True,
        description="While Qdrant does not answer, search vectors in PostgreSQL, which keeps indexes"
        " for that. Without it such a search fails, and no indexes are built.",
    )

    parser_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="An external parser that files are posted to; what it cannot read is read by our"
        " own. See docs/ingestion.md.",
    )
    parser_types: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=("pdf",),
        description="Comma-separated kinds of files that it is asked about, such as pdf,docx,image.",
    )
    parser_key: SecretStr | None = Field(default=None, description="Its API key.")
    parser_timeout: float = Field(
        default=120.0, gt=0, le=3600, description="Seconds that it may take for a file."
    )
    parser_bytes: int = Field(
        default=50 * 2**20, ge=1, description="Largest file that it is given."
    )
    parser_answer_bytes: int = Field(
        default=32 * 2**20, ge=1, description="Most bytes that it may answer with."
    )
    parser_concurrency: int = Field(
        default=4, ge=1, le=100, description="Most files that one process has it read at a time."
    )

    embed_onnx: str | None = Field(
        default=None,
        min_length=1,
        description="A sentence model on onnxruntime (trapline[minilm]) for embeddings: `minilm`, once"
        " `trapline models install minilm` was run, or a directory with model.onnx and"
        " tokenizer.json.",
    )
    embed_threads: int = Field(
        default=1, ge=1, le=64, description="Threads that it uses in one process."
    )
    embed_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="An OpenAI-compatible endpoint for embeddings, such as http://127.0.0.1:11434/v1."
        " It goes before the model on onnxruntime; without either, new sources are embedded with the"
        " light model that is installed.",
    )
    embed_key: SecretStr | None = Field(default=None, description="Its API key.")
    embed_model: str = Field(
        default="text-embedding-3-small", description="Which of its models is asked."
    )
    embed_dimensions: int = Field(
        default=1536, ge=1, le=4000, description="Numbers of that model's vectors."
    )
    embed_batch: int = Field(
        default=64, ge=1, le=2048, description="Most texts that it is given at a time."
    )
    embed_concurrency: int = Field(
        default=4, ge=1, le=100, description="Most requests to it at a time, of one process."
    )
    embed_timeout: float = Field(default=60.0, gt=0, description="Seconds that it may take.")

    # Politeness
    host_gap: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="Least seconds between two requests to a host, before they are shared by those"
        " in flight; a slow host is given more.",
    )
    recrawl_least_hours: float = Field(
        default=24.0, gt=0, description="Hours after which a page that always changes is due again."
    )
    recrawl_most_hours: float = Field(
        default=720.0, gt=0, description="Hours after which a page that never changes is due again."
    )

    # Queue
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a worker holds a task without renewing.",
    )
    lease_renewal_seconds: float = Field(
        default=15.0,
        gt=0,
        description="How often a worker renews what it holds; at least four times in a lease.",
    )
    stale_sweep_seconds: float = Field(
        default=15.0, gt=0, description="How often tasks whose lease ran out are taken back."
    )
    most_stalls: int = Field(
        default=9,
        ge=0,
        le=1000,
        description="How often a task may lose its worker before it has failed.",
    )
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
        default=60.0, gt=0, description="How often jobs whose time is over are deleted."
    )
    keep_days: int = Field(
        default=90, ge=1, description="Days that logs, statistics and ended agents are kept."
    )
    keep_gates_days: int = Field(
        default=30,
        ge=1,
        description="Days that the pace of a host is remembered after its last use.",
    )
    reindex_bytes: int = Field(
        default=64 * 2**20,
        ge=2**20,
        description="Size from which a queue's index is rebuilt when most of it is air.",
    )

    # Search
    index_memory_mb: int = Field(
        default=1024,
        ge=64,
        description="Most megabytes that PostgreSQL may use while it builds an index over vectors.",
    )

    # Retention
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
        description="Days that a version is kept after it was replaced; for ever if not set.",
    )

    # Schedules
    catch_up_seconds: float = Field(
        default=3600.0,
        ge=0,
        le=7 * 86400,
        description="How late a missed tick of a schedule still gets its job; later ones are skipped.",
    )

    # Logs
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe log line that is written."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, JSON elsewhere."
    )

    @classmethod
    def load(cls) -> "Settings":
        """Read the environment; a wrong value is named together with its variable."""
        try:
            return cls()
        except ValidationError as error:
            first = error.errors()[0]
            name = cls.variable(str(first["loc"][0])) if first["loc"] else "the environment"
            raise SettingsError(f"{name}: {first['msg']}") from None

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the environment variable that sets a field."""
        if field not in cls.model_fields:
            return field
        alias = cls.model_fields[field].validation_alias
        if isinstance(alias, AliasChoices):
            return str(alias.choices[0])
        return f"TRAPLINE_{field.upper()}"

    def external_dsn(self) -> str | None:
        """Return the URL of the external PostgreSQL, or None when Trapline runs its own."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        if self.db_host is None:
            return None
        user = quote(self.db_user or "", safe="")
        if self.db_password is not None:
            user += ":" + quote(self.db_password.get_secret_value(), safe="")
        credentials = f"{user}@" if user else ""
        return (
            f"postgresql://{credentials}{self.db_host}:{self.db_port}/{quote(self.db_name, safe='')}"
            f"?sslmode={self.db_sslmode}"
        )
