# SPDX-License-Identifier: MIT
"""What a service tells an administrator, which `tnk local` does not; for `Canned`."""

ROW = {"bucket_start": "2026-01-02T03:00:00Z", "bucket_end": "2026-01-02T04:00:00Z",
       "base_model": "a/model", "user_id": "urn:1", "user_name": "A, \"B\"", "session_id": "s-1",
       "project_id": None, "estimated_cost_usd": 0.25,
       "effective_rate_usd_per_million_tokens": 0.5,
       "effective_rate_usd_per_gigabyte_month": None}
USAGE = {"data": [{**ROW, "event_info": {"type": "training", "token_count": 500000}},
                  {**ROW, "event_info": {"type": "sampling_prefill", "cached": True,
                                         "token_count": 7}},
                  {**ROW, "session_id": None, "estimated_cost_usd": None,
                   "event_info": {"type": "storage", "free": False, "gigabyte_hours": 1.5}},
                  {**ROW, "session_id": "s-0", "event_info": {"type": "news", "x": [1]}}],
         "sessions": {"s-1": {"user_metadata": {"k": "v"}}, "s-0": {"user_metadata": None}},
         "cost_data_through": "2026-01-02T00:00:00Z"}
STORAGE = {"effective_rate_usd_per_gigabyte_month": 0.1,
           "data": [{"project_id": "p", "org_user_urn": "urn:1", "user_email": "a@b",
                     "user_name": "A", "checkpoint_count": 3, "size_bytes": 2048,
                     "size_gigabytes": 0.000002, "estimated_monthly_cost_usd": 0.5}]}
AUDIT = {"entries": [{"timestamp": "2026-01-02T03:04:05Z", "event": "checkpoint_read",
                      "event_details": {"a": 1}}]}
USAGE_ANSWERS = {"GET billing/usage/events": USAGE,
                 "GET billing/usage/checkpoints/current": STORAGE,
                 "GET audit": AUDIT}
