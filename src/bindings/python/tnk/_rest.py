# SPDX-License-Identifier: MIT
"""Runs, checkpoints, sessions and usage of the service."""
from __future__ import annotations

import functools
import itertools
import json
import os
import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal

from . import _future, _native, _types
from ._clients import ServiceClient
from ._future import CAPABILITIES, HANDLE, NONE, PAGE, PATH, APIFuture

Scope = Literal["owned", "accessible"]
_SCOPES = {"owned": 0, "accessible": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STATES = {"active": 1, "cancelled": 2, "failed": 4}
_REASONS = {"success": 8, "errored": 16, "interrupted": 32}
_HOUR_US = 3600 * 1000 * 1000


class ExperimentalWarning(FutureWarning):
    """A method that may change or go in any release of the service."""


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _time_or_none(us: int) -> datetime | None:
    return _time(us) if us else None


def _number(value: float) -> float | None:
    return None if value != value else value


def _us(when: datetime | date | str) -> int:
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return (when - _EPOCH) // timedelta(microseconds=1)


def _checkpoint(row: Any) -> Any:
    if row is None:
        return None
    return _types.get("Checkpoint")(
        checkpoint_id=row["id"],
        checkpoint_type=row["type"],
        time=_time(row["time_us"]),
        tinker_path=row["path"],
        size_bytes=row["size_bytes"] if row["size_bytes"] >= 0 else None,
        public=row["is_public"],
        user_metadata=row["user_metadata"],
        expires_at=_time_or_none(row["expires_us"]),
    )


def _run(row: Any) -> Any:
    return _types.get("TrainingRun")(
        training_run_id=row["id"],
        base_model=row["base_model"],
        model_owner=row["owner"],
        is_lora=row["is_lora"],
        corrupted=row["is_corrupted"],
        lora_rank=row["lora_rank"] or None,
        last_request_time=_time(row["last_request_us"]),
        last_checkpoint=_checkpoint(row["last_checkpoint"]),
        last_sampler_checkpoint=_checkpoint(row["last_sampler_checkpoint"]),
        user_metadata=row["user_metadata"],
    )


def _cursor(limit: int, offset: int, total: int) -> Any:
    if total < 0:
        return None
    return _types.get("Cursor")(offset=offset, limit=limit, total_count=total)


def _runs(limit: int, offset: int, page: Any) -> Any:
    rows, total, *_ = page
    cursor = _cursor(limit, offset, total if total >= 0 else offset + len(rows))
    return _types.get("TrainingRunsResponse")(training_runs=[_run(row) for row in rows], cursor=cursor)


def _checkpoints(limit: int, offset: int, page: Any) -> Any:
    rows, total, *_ = page
    return _types.get("CheckpointsListResponse")(
        checkpoints=[_checkpoint(row) for row in rows], cursor=_cursor(limit, offset, total)
    )


def _first(make: Callable[[Any], Any], page: Any) -> Any:
    return make(page[0][0])


def _weights(row: Any) -> Any:
    more = {}
    if row["optimizer_json"]:
        config = json.loads(row["optimizer_json"])
        name = {"adamw": "AdamOptimizerConfig", "dimuon": "DimuonOptimizerConfig"}.get(config.get("type"))
        more["optimizer_config"] = _types.get(name)(**config) if name else config
    return _types.get("WeightsInfoResponse")(
        base_model=row["base_model"],
        is_lora=row["is_lora"],
        lora_rank=row["lora_rank"] or None,
        train_unembed=row["train_unembed"],
        train_mlp=row["train_mlp"],
        train_attn=row["train_attn"],
        **more,
    )


def _files(row: Any) -> Any:
    return _types.get("ExternalWeightsUrlsResponse")(urls=row["files"] or {}, expires=_time(row["expires_us"]))


def _session(row: Any) -> Any:
    return _types.get("GetSessionResponse")(
        training_run_ids=row["run_ids"],
        sampler_ids=row["sampler_ids"],
        user_metadata=row["user_metadata"],
        display_name=row["display_name"],
    )


def _sampler(row: Any) -> Any:
    return _types.get("GetSamplerResponse")(
        sampler_id=row["id"], base_model=row["base_model"], model_path=row["model_path"]
    )


def _status(row: Any) -> Any:
    if row is None:
        return None
    found = {name: row[name] for name in ("type", "detail", "category", "message") if row[name] is not None}
    if row["reason"] is not None:
        found["reason"] = json.loads(row["reason"])
    return found


def _summary(row: Any) -> Any:
    cls = _types.get("SessionSummary")
    values = {
        "session_id": row["id"],
        "created_at": _time(row["created_us"]),
        "owner": row["owner"] or "",
        "project_id": row["project_id"] or "",
        "status": _status(row["status"]),
        "checkpoints_count": max(row["n_checkpoints"], 0),
        "display_name": row["display_name"],
        "user_metadata": row["user_metadata"],
        "checkpoint_storage_bytes": row["checkpoint_bytes"] if row["checkpoint_bytes"] >= 0 else None,
    }
    return cls.model_validate(values)


# Pages of searches whose next page may be asked for.
_pages: dict[Any, Any] = {}
_numbers = itertools.count(1)


def _searched(promise: Any) -> Any:
    rows, *_, is_last = _native.page(promise)
    sessions = [_summary(row) for row in rows]
    cursor = None
    if not is_last:
        # libtnk keeps the service's cursor; this one names the page. It may be empty.
        number = next(_numbers)
        key = (sessions[-1].created_at if sessions else _time(number), f"page-{number}")
        while len(_pages) >= 64:
            _pages.pop(next(iter(_pages)))
        _pages[key] = promise
        cursor = _types.get("SessionSearchCursor")(last_created_at=key[0], last_session_id=key[1])
    return _types.get("SessionSearchResponse")(sessions=sessions, next_cursor=cursor)


def _usage(row: Any) -> Any:
    return _types.get("BillingUsageEvent").model_validate(
        {
            "bucket_start": _time(row["start_us"]),
            "bucket_end": _time(row["end_us"]),
            "base_model": row["base_model"],
            "user_id": row["user_id"],
            "user_name": row["user_name"],
            "session_id": row["session_id"],
            "project_id": row["project_id"],
            "estimated_cost_usd": _number(row["cost_usd"]),
            "effective_rate_usd_per_million_tokens": _number(row["usd_per_million_tokens"]),
            "effective_rate_usd_per_gigabyte_month": _number(row["usd_per_gigabyte_month"]),
            "event_info": json.loads(row["event"]["json"]),
        }
    )


def _billing(page: Any) -> Any:
    rows, _, through, _, _ = page
    made = _types.get("BillingUsageSession")
    return _types.get("BillingUsageResponse")(
        data=[_usage(row) for row in rows],
        sessions={
            row["session_id"]: made(user_metadata=row["user_metadata"]) for row in rows if row["session_id"]
        },
        cost_data_through=_time_or_none(through),
    )


def _storage(page: Any) -> Any:
    rows, _, _, rate, _ = page
    made = _types.get("CurrentCheckpointStorageUsageItem")
    return _types.get("CurrentCheckpointStorageUsageResponse")(
        effective_rate_usd_per_gigabyte_month=_number(rate),
        data=[
            made(
                project_id=row["project_id"],
                org_user_urn=row["user_urn"],
                user_email=row["user_email"],
                user_name=row["user_name"],
                checkpoint_count=row["n_checkpoints"],
                size_bytes=row["size_bytes"],
                size_gigabytes=row["size_gigabytes"],
                estimated_monthly_cost_usd=_number(row["usd_per_month"]),
            )
            for row in rows
        ],
    )


def _audit(page: Any) -> Any:
    made = _types.get("AuditLogEntry")
    return _types.get("AuditLogResponse")(
        entries=[
            made(
                timestamp=_time(row["time_us"]),
                event=row["event"],
                event_details=json.loads(row["details"]) if row["details"] else {},
                model_id=row["model_id"],
                tinker_path=row["tinker_path"],
                purpose=row["purpose"],
            )
            for row in page[0]
        ]
    )


def _capabilities(rows: Any) -> Any:
    made = _types.get("SupportedModel")
    return _types.get("GetServerCapabilitiesResponse")(
        supported_models=[
            made(
                model_name=row["name"],
                max_context_length=row["max_context_length"] or None,
                trainable=row["trainable"],
                sampleable=row["sampleable"],
            )
            for row in rows
        ]
    )


def _path_of(run: str, checkpoint: str) -> str:
    return f"tinker://{run}/{checkpoint}"


@functools.cache
def _sessionless(base_url: str | None, api_key: str | None, generation: int) -> ServiceClient:
    return ServiceClient(base_url=base_url, api_key=api_key)


class _Rest:
    def __init__(
        self, _service: Any = None, *, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        if _service is not None and (base_url is not None or api_key is not None):
            raise ValueError("give either a service or base_url and api_key, not both")
        self.holder: ServiceClient = _service or _sessionless(base_url, api_key, _future.generation)

    def get_telemetry(self) -> None:
        """This client sends no telemetry."""

    def _start(self, reader: int, read: Any, function: str, *arguments: Any) -> APIFuture[Any]:
        return _future.start(reader, read, function, self.holder._handle, *arguments)

    def _page(self, read: Any, function: str, *arguments: Any) -> APIFuture[Any]:
        return self._start(PAGE, read, function, *arguments)


class AdminClient(_Rest):
    """Usage, storage and the audit log of an organization."""

    def get_audit_log(self, event_type: str = "all", day: date | None = None) -> APIFuture[Any]:
        return self._page(
            _audit,
            "tnk_rest_get_audit_log",
            None if event_type == "all" else event_type,
            day.isoformat() if day is not None else None,
        )

    async def get_audit_log_async(self, event_type: str = "all", day: date | None = None) -> Any:
        return await self.get_audit_log(event_type, day)

    def get_billing_usage(self, starting_on: datetime | str, ending_before: datetime | str) -> APIFuture[Any]:
        return self._page(_billing, "tnk_rest_get_usage", _us(starting_on), _us(ending_before))

    async def get_billing_usage_async(self, starting_on: datetime | str, ending_before: datetime | str) -> Any:
        return await self.get_billing_usage(starting_on, ending_before)

    def get_current_checkpoint_storage_usage(self, project_id: str | None = None) -> APIFuture[Any]:
        return self._page(_storage, "tnk_rest_get_storage", project_id)

    async def get_current_checkpoint_storage_usage_async(self, project_id: str | None = None) -> Any:
        return await self.get_current_checkpoint_storage_usage(project_id)


class RestClient(AdminClient):
    """Runs, checkpoints, sessions and samplers. Needs no session."""

    def get_server_capabilities(self) -> APIFuture[Any]:
        return self._start(CAPABILITIES, _capabilities, "tnk_service_capabilities")

    def get_training_run(self, training_run_id: str, access_scope: Scope = "owned") -> APIFuture[Any]:
        return self._page(
            functools.partial(_first, _run), "tnk_rest_get_run", training_run_id, _SCOPES[access_scope]
        )

    async def get_training_run_async(self, training_run_id: str, access_scope: Scope = "owned") -> Any:
        return await self.get_training_run(training_run_id, access_scope)

    def get_training_run_by_tinker_path(self, tinker_path: str, access_scope: Scope = "owned") -> APIFuture[Any]:
        parsed = _types.get("ParsedCheckpointTinkerPath").from_tinker_path(tinker_path)
        return self.get_training_run(parsed.training_run_id, access_scope)

    async def get_training_run_by_tinker_path_async(self, tinker_path: str, access_scope: Scope = "owned") -> Any:
        return await self.get_training_run_by_tinker_path(tinker_path, access_scope)

    def get_weights_info_by_tinker_path(self, tinker_path: str) -> APIFuture[Any]:
        return self._page(functools.partial(_first, _weights), "tnk_rest_get_weights_info", tinker_path)

    def list_training_runs(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned", project_id: str | None = None
    ) -> APIFuture[Any]:
        options = {"limit": limit, "offset": offset, "scope": _SCOPES[access_scope], "project_id": project_id}
        return self._page(
            functools.partial(_runs, limit, offset), "tnk_rest_list_runs", ("tnk_list_options_t", options)
        )

    async def list_training_runs_async(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned", project_id: str | None = None
    ) -> Any:
        return await self.list_training_runs(limit, offset, access_scope, project_id)

    def list_checkpoints(self, training_run_id: str) -> APIFuture[Any]:
        return self._page(functools.partial(_checkpoints, 0, 0), "tnk_rest_list_run_checkpoints", training_run_id)

    async def list_checkpoints_async(self, training_run_id: str) -> Any:
        return await self.list_checkpoints(training_run_id)

    def list_user_checkpoints(self, limit: int = 100, offset: int = 0) -> APIFuture[Any]:
        return self._page(
            functools.partial(_checkpoints, limit, offset),
            "tnk_rest_list_checkpoints",
            ("tnk_list_options_t", {"limit": limit, "offset": offset}),
        )

    async def list_user_checkpoints_async(self, limit: int = 100, offset: int = 0) -> Any:
        return await self.list_user_checkpoints(limit, offset)

    def get_external_weights_urls(self, tinker_path: str) -> APIFuture[Any]:
        parsed = _types.get("ParsedCheckpointTinkerPath").from_tinker_path(tinker_path)
        if not parsed.checkpoint_id.startswith("external_weights/"):
            raise ValueError(f"get_external_weights_urls needs external weights, not {tinker_path!r}")
        return self._page(functools.partial(_first, _files), "tnk_rest_get_external_files", tinker_path)

    async def get_external_weights_urls_async(self, tinker_path: str) -> Any:
        return await self.get_external_weights_urls(tinker_path)

    def _change(self, function: str, tinker_path: str, *more: Any) -> APIFuture[None]:
        _types.get("ParsedCheckpointTinkerPath").from_tinker_path(tinker_path)
        return self._start(NONE, None, function, tinker_path, *more)

    def delete_checkpoint(self, training_run_id: str, checkpoint_id: str) -> APIFuture[None]:
        path = _path_of(training_run_id, checkpoint_id)
        return self._start(NONE, None, "tnk_rest_delete_checkpoint", path)

    async def delete_checkpoint_async(self, training_run_id: str, checkpoint_id: str) -> None:
        await self.delete_checkpoint(training_run_id, checkpoint_id)

    def delete_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        return self._change("tnk_rest_delete_checkpoint", tinker_path)

    async def delete_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        await self.delete_checkpoint_from_tinker_path(tinker_path)

    def publish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        return self._change("tnk_rest_publish_checkpoint", tinker_path)

    async def publish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        await self.publish_checkpoint_from_tinker_path(tinker_path)

    def unpublish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        return self._change("tnk_rest_unpublish_checkpoint", tinker_path)

    async def unpublish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        await self.unpublish_checkpoint_from_tinker_path(tinker_path)

    def set_checkpoint_ttl_from_tinker_path(self, tinker_path: str, ttl_seconds: int | None) -> APIFuture[None]:
        return self._change("tnk_rest_set_checkpoint_ttl", tinker_path, ttl_seconds or 0)

    async def set_checkpoint_ttl_from_tinker_path_async(self, tinker_path: str, ttl_seconds: int | None) -> None:
        await self.set_checkpoint_ttl_from_tinker_path(tinker_path, ttl_seconds)

    def copy_weights(
        self,
        path: str,
        destination_project_id: str | None = None,
        *,
        ttl_seconds: int | None = None,
        weights_access_token: str | None = None,
    ) -> APIFuture[str]:
        project = destination_project_id or os.environ.get("TINKER_PROJECT_ID") or None
        if project is None:
            raise ValueError("Provide destination_project_id or set TINKER_PROJECT_ID")
        options = {
            "path": path,
            "project_id": project,
            "ttl_seconds": ttl_seconds,
            "weights_access_token": weights_access_token,
        }
        return self._start(PATH, None, "tnk_rest_copy_weights", ("tnk_copy_options_t", options))

    async def copy_weights_async(self, *args: Any, **named: Any) -> str:
        return await self.copy_weights(*args, **named)

    def get_session(self, session_id: str, access_scope: Scope = "owned") -> APIFuture[Any]:
        return self._page(
            functools.partial(_first, _session), "tnk_rest_get_session", session_id, _SCOPES[access_scope]
        )

    async def get_session_async(self, session_id: str, access_scope: Scope = "owned") -> Any:
        return await self.get_session(session_id, access_scope)

    def list_sessions(self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned") -> APIFuture[Any]:
        options = {"limit": limit, "offset": offset, "scope": _SCOPES[access_scope]}

        def read(page: Any) -> Any:
            return _types.get("ListSessionsResponse")(sessions=[row["id"] for row in page[0]])

        return self._page(read, "tnk_rest_list_sessions", ("tnk_list_options_t", options))

    async def list_sessions_async(self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned") -> Any:
        return await self.list_sessions(limit, offset, access_scope)

    def assign_session_project(self, session_id: str, project_id: str) -> APIFuture[None]:
        return self._start(NONE, None, "tnk_rest_move_session", session_id, project_id)

    async def assign_session_project_async(self, session_id: str, project_id: str) -> None:
        await self.assign_session_project(session_id, project_id)

    def export_session_trace(self, session_id: str) -> APIFuture[str]:
        return self._start(PATH, None, "tnk_rest_export_trace", session_id)

    async def export_session_trace_async(self, session_id: str) -> str:
        return await self.export_session_trace(session_id)

    def whoami(self) -> APIFuture[Any]:
        def read(page: Any) -> Any:
            return _types.get("WhoamiResponse")(**page[0][0])

        return self._page(read, "tnk_rest_whoami")

    def get_sampler(self, sampler_id: str) -> APIFuture[Any]:
        return self._page(functools.partial(_first, _sampler), "tnk_rest_get_sampler", sampler_id)

    async def get_sampler_async(self, sampler_id: str) -> Any:
        return await self.get_sampler(sampler_id)

    def search_sessions(self, request: Any) -> APIFuture[Any]:
        """The service marks this call as experimental. A cursor must be `next_cursor` of
        a response in this process, one of the last 64."""
        warnings.warn(
            "RestClient.search_sessions is experimental: it may change in any release.",
            ExperimentalWarning,
            stacklevel=2,
        )
        cursor = getattr(request, "cursor", None)
        if cursor is not None:
            page = _pages.get((cursor.last_created_at, cursor.last_session_id))
            if page is None:
                raise ValueError("the cursor is of no response that this process remembers")
            address = _future.call("tnk_promise_page", page)
            return self._start(HANDLE, _searched, "tnk_rest_next_page", address)
        owners = {"own": 0, "accessible": 1, "user": 2}
        states = 0
        for query in request.statuses or ():
            if query.type in _STATES:
                states |= _STATES[query.type]
            else:
                for reason in query.reasons or _REASONS:
                    states |= _REASONS[reason]
        options = {
            "session_id": request.session_id,
            "display_name": request.display_name,
            "project_ids": request.project_ids,
            "user_metadata": request.user_metadata or None,
            "owner": owners[request.owner.type],
            "owner_urns": getattr(request.owner, "owner_urns", None),
            "states": states,
            "limit": request.limit,
        }

        return self._start(HANDLE, _searched, "tnk_rest_search_sessions", ("tnk_search_options_t", options))
