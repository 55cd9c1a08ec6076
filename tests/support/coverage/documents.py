"""The names in the five reference documents, as data: a row removed from a page fails.

Columns are given by table; NAMES holds what stands on its own (indexes, keys, functions, …), VALUES
the words that a column or enum may hold. ROWS is the least number of rows a document has, for what has
no name in it: queries, clean-up rules, figures, edge cases, issues, improvements.
"""

NUQ = "NuQ and its webhook bridge"
RAG = "RAG processing queue"
UNOBTANIUM = "Unobtanium crawler schema"
LEXICON = "Lexicon"
BEE = "Blue Banded Bee"
FAULTS = "Faults not repeated"

COLUMNS: dict[str, dict[str, str]] = {
    NUQ: {
        "nuq.queue_scrape": """
            id status priority created_at finished_at lock locked_at stalls data returnvalue
            failedreason owner_id group_id listen_channel_id
        """,
        "nuq.queue_scrape_backlog": """
            id data created_at priority listen_channel_id owner_id group_id times_out_at
        """,
        "nuq.group_crawl": "id status created_at owner_id ttl expires_at",
        "webhook.crawl_sessions": """
            id job_id base_url operation_type started_at completed_at status success
            total_urls completed_urls failed_urls total_pages pages_indexed pages_failed
            total_chunking_ms total_embedding_ms total_qdrant_ms total_bm25_ms duration_ms
            initiated_at e2e_duration_ms auto_index expires_at extra_metadata error_message
            created_at updated_at
        """,
        "webhook.operation_metrics": """
            id timestamp operation_type operation_name duration_ms success error_message
            request_id job_id crawl_id document_url extra_metadata created_at
        """,
        "webhook.request_metrics": """
            id timestamp method path status_code duration_ms request_id client_ip user_agent
            extra_metadata created_at
        """,
        "webhook.change_events": """
            id watch_id watch_url detected_at diff_summary snapshot_url rescrape_job_id
            rescrape_status indexed_at metadata created_at
        """,
        "nuq.queue_crawl_finished": """
            id status priority created_at finished_at lock locked_at stalls data returnvalue
            failedreason owner_id group_id listen_channel_id
        """,
    },
    RAG: {
        "rag.processing_jobs": """
            id application_id knowledge_source_id type status priority payload attempts
            max_attempts last_error created_at started_at completed_at heartbeat_at
            embedding_config user_id
        """,
        "rag.knowledge_sources": "id status",
        "app.applications": "id",
    },
    UNOBTANIUM: {
        "agent": """
            agent_id time_started_unix_utc time_finished_unix_utc agent_uuid name
            http_user_agent
        """,
        "crawl_log": """
            crawl_log_id agent_id url_id crawl_type crawl_uuid time_started_unix_utc
            time_taken_ms exit_code message
        """,
        "request": """
            request_id crawl_log_id url_id time_sent_unix_utc request_duration_ms
            robotstxt_approved exit_code server_last_modified_unix_utc http_status_code
            http_etag
        """,
        "file": """
            file_id crawl_log_id request_id url_id last_modified_unix_utc file_size
            mimetype_id canonical_url_id
        """,
        "file_text": "file_id text",
        "redirect": """
            redirect_id crawl_log_id request_id url_id last_modified_unix_utc to_url_id
            information_source is_permanent by_security_policy
        """,
        "crawl_candidate": """
            url_id last_crawl_time_unix_utc last_crawl_exit_code
            last_contentful_crawl_time_unix_utc last_contentful_http_etag
        """,
        "url": "url_id",
        "mimetype": "mimetype_id",
    },
    LEXICON: {
        "website": """
            id name base_url config status created_at updated_at created_by
        """,
        "crawl_job": """
            id website_id job_type seed_url embedded_config status priority scheduled_at
            started_at completed_at cancelled_at cancelled_by cancellation_reason
            error_message retry_count max_retries metadata variables progress created_at
            updated_at
        """,
        "crawled_page": """
            id website_id job_id url url_hash content_hash title extracted_content metadata
            gcs_html_path gcs_documents is_duplicate duplicate_of similarity_score
            crawled_at created_at
        """,
        "content_hash": """
            content_hash first_seen_page_id occurrence_count last_seen_at created_at
        """,
        "crawl_log": """
            id job_id website_id step_name log_level message context trace_id created_at
        """,
    },
    BEE: {
        "domains": "id name created_at",
        "pages": "id domain_id path created_at",
        "jobs": """
            id domain_id user_id organisation_id status progress total_tasks completed_tasks
            failed_tasks skipped_tasks found_tasks sitemap_tasks created_at started_at
            completed_at concurrency find_links max_pages include_paths exclude_paths
            required_workers
        """,
        "tasks": """
            id job_id domain_id page_id status source_type source_url created_at started_at
            completed_at status_code response_time cache_status content_type error
            retry_count
        """,
        "users": "id email full_name organisation_id created_at updated_at",
        "organisations": "id name created_at updated_at",
    },
}

VALUES: dict[str, dict[str, str]] = {
    NUQ: {
        "nuq.job_status": "queued active completed failed",
        "nuq.group_status": "active completed cancelled",
        "webhook.crawl_sessions.operation_type": "scrape scrape_batch crawl map search extract",
        "webhook.crawl_sessions.status": "in_progress",
        "webhook.operation_metrics.operation_type": "chunking embedding qdrant bm25",
        "data.mode": "single_urls kickoff kickoff_sitemap",
    },
    RAG: {
        "rag.processing_jobs.type": "file url crawl_page site_crawl",
        "rag.processing_jobs.status": "pending processing completed failed cancelled",
        "rag.knowledge_sources.status": "pending processing completed failed",
    },
    LEXICON: {
        "job_type_enum": "one_time scheduled recurring",
        "status_enum": "pending running completed failed cancelled active inactive",
        "log_level_enum": "DEBUG INFO WARNING ERROR CRITICAL",
    },
    BEE: {
        "jobs.status": "pending running completed cancelled failed",
        "tasks.status": "pending running completed failed skipped",
    },
}

NAMES: dict[str, tuple[str, ...]] = {
    NUQ: (
        # indexes
        "nuq_queue_scrape_queued_optimal_2_idx",
        "queue_scrape_active_locked_at_idx",
        "nuq_queue_scrape_group_mode_status_idx",
        "nuq_queue_scrape_group_completed_listing_idx",
        # keys of data
        "data.mode",
        "data.team_id",
        "data.url",
        "data.scrapeOptions",
        "data.crawlerOptions",
        "data.internalOptions",
        "data.origin",
        "data.crawl_id",
        "data.sitemapped",
        "data.webhook",
        "data.v1",
        "data.is_scrape",
        "data.apiKeyId",
        "data.zeroDataRetention",
        "data.concurrencyLimited",
        "data.traceContext",
        "data.sitemapUrl",
        "data.location",
        # keys of returnvalue
        "returnvalue.id",
        "returnvalue.url",
        "returnvalue.content",
        "returnvalue.markdown",
        "returnvalue.html",
        "returnvalue.rawHtml",
        "returnvalue.llm_extraction",
        "returnvalue.createdAt",
        "returnvalue.updatedAt",
        "returnvalue.type",
        "returnvalue.metadata",
        "returnvalue.metadata.sourceURL",
        "returnvalue.metadata.title",
        "returnvalue.metadata.description",
        "returnvalue.metadata.language",
        "returnvalue.metadata.ogImage",
        "returnvalue.childrenLinks",
        "returnvalue.linksOnPage",
        "returnvalue.provider",
        "returnvalue.warning",
        "returnvalue.actions",
        "returnvalue.actions.screenshots",
        "returnvalue.actions.scrapes",
        "returnvalue.actions.javascriptReturns",
        "returnvalue.actions.pdfs",
        "returnvalue.branding",
        "returnvalue.index",
    ),
    RAG: (
        # indexes
        "idx_processing_jobs_pending",
        "idx_processing_jobs_app",
        "idx_processing_jobs_ks",
        "idx_processing_jobs_stale",
        # events
        "crawl.started",
        "crawl.page",
        "crawl.completed",
        "crawl.failed",
        # endpoints
        "POST /upload/documents",
        "GET /upload/url",
        "GET /upload/url?crawlLinks=true",
        "GET /api/knowledge-source/:id/progress",
        "GET /api/knowledge-source/:appId/progress",
        "POST /api/webhooks/firecrawl",
        "POST /crawl",
        "GET /crawl/:id",
        # security
        "X-Firecrawl-Signature",
        "FIRECRAWL_WEBHOOK_SECRET",
        # functions
        "claimPendingJobs(limit)",
        "processJob(job)",
        "recoverStaleJobs()",
        "updateHeartbeat(jobId)",
    ),
    UNOBTANIUM: (
        # indexes
        "crawl_log_quickinfo",
        # enumerations
        "crawl exit code",
        "contentful category of exit codes",
        "crawl type",
        "Information Source",
        "HTTP status code",
        # options
        "option --worker-name",
    ),
    LEXICON: (
        # indexes
        "ix_website_status",
        "ix_website_config",
        "ix_website_created_at",
        "ix_crawl_job_website_id",
        "ix_crawl_job_job_type",
        "ix_crawl_job_status",
        "ix_crawl_job_scheduled_at",
        "ix_crawl_job_created_at",
        "ix_crawl_job_seed_url",
        "ix_crawl_job_priority_status",
        "ix_crawled_page_website_url_hash",
        "ix_crawled_page_website_id",
        "ix_crawled_page_job_id",
        "ix_crawled_page_url_hash",
        "ix_crawled_page_content_hash",
        "ix_crawled_page_crawled_at",
        "ix_crawled_page_is_duplicate",
        "ix_crawled_page_duplicate_of",
        "ix_content_hash_last_seen_at",
        "ix_content_hash_occurrence_count",
        "ix_crawl_log_job_id",
        "ix_crawl_log_website_id",
        "ix_crawl_log_log_level",
        "ix_crawl_log_created_at",
        "ix_crawl_log_trace_id",
        "ix_crawl_log_job_created",
        # enums
        "job_type_enum",
        "status_enum",
        "log_level_enum",
        # Redis keys
        "url:dedup:{url_hash}",
        "url:dedup:{url_hash} field job_id",
        "url:dedup:{url_hash} field crawled_at",
        "url:dedup:{url_hash} field url",
        "job:cancel:{job_id}",
        "job:cancel:{job_id} field cancelled",
        "job:cancel:{job_id} field reason",
        "ratelimit:{website_id}",
        "browser:pool:status",
        "browser:pool:status field active_browsers",
        "browser:pool:status field active_contexts",
        "browser:pool:status field available_contexts",
        "browser:pool:status field memory_mb",
        "job:progress:{job_id}",
        "job:progress:{job_id} field pages_crawled",
        "job:progress:{job_id} field pages_pending",
        "job:progress:{job_id} field errors",
        "job:progress:{job_id} field last_update",
        # repository functions
        "WebsiteRepository.create",
        "WebsiteRepository.get_by_id",
        "WebsiteRepository.get_by_name",
        "WebsiteRepository.list",
        "WebsiteRepository.count",
        "WebsiteRepository.update",
        "WebsiteRepository.delete",
        "CrawlJobRepository.create",
        "CrawlJobRepository.get_by_id",
        "CrawlJobRepository.get_pending",
        "CrawlJobRepository.update_status",
        "CrawlJobRepository.update_progress",
        "CrawlJobRepository.cancel",
        "CrawledPageRepository.create",
        "CrawledPageRepository.get_by_id",
        "CrawledPageRepository.get_by_url_hash",
        "CrawledPageRepository.list_by_job",
        "CrawledPageRepository.mark_as_duplicate",
        "ContentHashRepository.upsert",
        "ContentHashRepository.get",
        "CrawlLogRepository.create",
        "CrawlLogRepository.list_by_job",
        "CrawlLogRepository.get_errors",
        # endpoints
        "GET /health",
    ),
    BEE: (
        # indexes
        "idx_domains_name",
        "idx_pages_domain_path",
        "idx_jobs_status",
        "idx_jobs_user_org",
        "idx_jobs_created_at",
        "idx_tasks_status",
        "idx_tasks_job_id",
        "idx_tasks_job_status",
        "idx_tasks_pending",
        "idx_users_email",
        "idx_users_organisation",
        "idx_tasks_claim_optimised",
        "idx_jobs_org_status_created",
        "idx_jobs_org_created",
        "idx_jobs_stats",
        "idx_jobs_avg_time",
        "idx_jobs_duration",
        # variables
        "DATABASE_URL",
        "DB_HOST",
        "DB_PORT",
        "DB_USER",
        "DB_PASSWORD",
        "DB_NAME",
        "DB_SSLMODE",
        # timeouts
        "statement_timeout",
        "idle_in_transaction_session_timeout",
        # policies
        "policy users_own_data",
        "policy org_jobs_access",
        "policy job_tasks_access",
        # endpoints
        "POST /admin/reset-db",
        # views
        "observability.pg_stat_statements_top_total_time",
    ),
    FAULTS: (
        "Stalled-out jobs fail without reason or finish time",
        "A group finishes before its tasks",
        "Cancelled groups are never cleaned up",
        "Exhausted stale jobs stay in processing for ever",
        "site_crawl is missing from the type check",
        "The signature is compared with ===",
        "Completion ignores skipped tasks",
        "Progress is computed from the counters before the update",
        "An index on a column that does not exist",
        "A receiver answers 200 when it failed to store",
        "Webhook data is an array, not an object",
        "Metrics without any clean-up",
        "One row per URL with no history",
        "A crawl can exceed its limit",
        "A 404 for a job created a moment ago",
        "Progress counters scan all rows",
    ),
}

ROWS = {NUQ: 262, RAG: 135, UNOBTANIUM: 94, LEXICON: 195, BEE: 188, FAULTS: 16}


def listed(document: str) -> list[str]:
    """Return every name that the pages must list for a document, as the first cell writes it."""
    found = list(NAMES[document])
    for table, columns in COLUMNS.get(document, {}).items():
        found += [table, *(f"{table}.{column}" for column in columns.split())]
    for owner, values in VALUES.get(document, {}).items():
        found += [f"{owner} = {value}" for value in values.split()]
    return found
