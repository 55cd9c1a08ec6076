"""Tracking parameters of URLs: they name the visitor's origin, not the page; docs/urls.md lists them."""

TRACKING_PREFIXES = ("utm_", "mtm_", "pk_", "matomo_", "piwik_", "hsa_", "_hs", "trk_")
"""A parameter whose name has one of these prefixes, in any case, is dropped."""

TRACKING_NAMES = (
    # advertising clicks: Google, Meta, Microsoft, X, TikTok, LinkedIn, Pinterest, Snapchat, Reddit, …
    "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "gad_source", "gad_campaignid", "srsltid",
    "fbclid", "fb_action_ids", "fb_action_types", "fb_ref", "fb_source", "igshid", "igsh",
    "msclkid", "twclid", "ttclid", "li_fat_id", "epik", "sccid", "rdt_cid", "yclid", "ysclid",
    "_openstat", "wickedid", "irclickid", "irgwc", "cjevent", "s_kwcid", "ef_id", "awc", "tduid",
    # analytics
    "_ga", "_gl", "_gac", "s_cid", "icid", "ncid", "vero_id", "vero_conv", "oly_anon_id",
    "oly_enc_id", "rb_clickid", "spm", "scm",
    # newsletters and marketing mail
    "mc_cid", "mc_eid", "mkt_tok", "ml_subscriber", "ml_subscriber_hash", "hsctatracking",
    "_kx", "ck_subscriber_id", "bxid", "nr_email_referer", "dm_i", "elqtrackid", "elqtrack",
    "__s", "sb_referer_host", "at_campaign", "at_medium", "guccounter", "guce_referrer",
    "guce_referrer_sig",
)  # fmt: skip
"""A parameter of this name, in any case, is dropped."""

_NAMES = frozenset(TRACKING_NAMES)


def is_tracking(name: str) -> bool:
    lower = name.lower()
    return lower in _NAMES or lower.startswith(TRACKING_PREFIXES)
