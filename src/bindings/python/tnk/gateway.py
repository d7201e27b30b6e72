# SPDX-License-Identifier: MIT
"""A server of the chat APIs of OpenAI and Anthropic for agents, in this process.

    with tnk.gateway.Gateway(service, tokenizer=tokenizer, template=template) as gateway:
        gateway.use(sampler).result()
        client = openai.OpenAI(base_url=gateway.address + "/v1", api_key="none")
        ...
        gateway.reward(1.0, session="first")
        data = gateway.examples(rewarded=True)

Every sampled token is recorded. The gateway runs on the library's thread, which never
takes the interpreter's lock, so agents are served while Python computes. The header
tnk/gateway.h has the details.
"""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _clients, _future, _native, _types, chat

if TYPE_CHECKING:
    from ._compat_types import Datum
    from ._future import APIFuture

Formats = Literal["hint", "retry", "refuse"]
_FORMATS: tuple[Formats, ...] = ("hint", "retry", "refuse")

__all__ = ["Example", "Gateway", "Key"]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of one session. Its representation does not show the secret."""

    id: str
    key: str

    def __repr__(self) -> str:
        return f"Key(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class Example:
    """A branch of a conversation as a training example. `turns` has, for each turn, its
    number, the version of its weights, its reward, and the position of its tokens."""

    session: str
    turns: list[dict[str, Any]]
    datum: Datum


class Gateway:
    """A gateway, which listens as soon as it is made. It serves until it is closed, by
    close(), the end of a `with`, the end of its service, or the end of the program."""

    def __init__(
        self,
        service: _clients.ServiceClient,
        *,
        tokenizer: chat.Tokenizer | None = None,
        template: chat.Template | None = None,
        family: chat.Family = "plain",
        variables: Mapping[str, Any] | None = None,
        host: str | None = None,
        port: int = 0,
        key: str | None = None,
        admin_key: str | None = None,
        model: str | None = None,
        record: str | os.PathLike[str] | None = None,
        formats: Formats = "hint",
        **options: Any,
    ) -> None:
        """Without a tokenizer each byte is a token, and without a template roles are shown
        as in "User: Hi". Port 0 is a free one. `key` is the key of agents, `admin_key` that
        of rewards, weights and the record. Without `record`, a file, the record is in
        memory. Further options are the members of tnk_gateway_options_t, such as
        max_tokens, tls_cert and usd_prompt."""
        self._service = service
        values = {
            "family": chat.index_of("family", family, chat._FAMILIES),
            "variables": chat.variables_of(variables),
            "host": host,
            "port": port,
            "key": key,
            "admin_key": admin_key,
            "model": model,
            "record": None if record is None else os.fspath(record),
            "formats": chat.index_of("formats", formats, _FORMATS),
            **options,
        }
        # Both stay alive while the gateway uses them.
        handles = chat.handle_of("tokenizer", tokenizer, chat.Tokenizer), chat.handle_of("template", template, chat.Template)
        if not isinstance(service, _clients.ServiceClient):
            raise TypeError(f"service must be a ServiceClient, not {type(service).__name__}")
        address = service._handle
        self._generation = _future.generation
        with service._lock:  # close() must come later
            if service._closed:
                raise _clients._closed()
            self._id: int = _future.native(_native.gateway_open, address, *handles, values)
        self._is_closed = False
        self.address: str = self._call(_native.gateway_info)[0]

    def _call(self, function: Any, *arguments: Any) -> Any:
        if self._generation != _future.generation:
            raise RuntimeError("this gateway belongs to the parent process")
        if self._is_closed or self._service._closed:
            raise RuntimeError("the gateway is closed")
        return _future.native(function, self._id, *arguments)

    def use(
        self,
        weights: _clients.SamplingClient | str | None = None,
        *,
        base_model: str | None = None,
        record_stability_info: bool | None = None,
    ) -> APIFuture[None]:
        """Sample new requests from these weights: a SamplingClient, the path of a
        checkpoint, or a base model. Requests in progress keep theirs."""
        options: dict[str, Any] = {"base_model": base_model, "record_stability_info": record_stability_info}
        if isinstance(weights, _clients.SamplingClient):
            options["exported"] = weights.get_sampler_handle()
        elif weights is None or isinstance(weights, str):
            options["model_path"] = weights
        else:
            raise TypeError(f"weights must be a SamplingClient or a path, not {type(weights).__name__}")
        if weights is None and base_model is None:
            raise ValueError("weights or base_model must be given")
        self._call(_native.gateway_info)
        where = _future.pump()
        future = _future.register(where, _future.NONE, None)
        try:
            future._operation = _native.gateway_use(where.native, future._tag, self._id, options)
        except BaseException as error:
            return _future.failed(where, future, error)
        return future

    def reward(self, reward: float, *, session: str | None = None, id: str | None = None, choice: int = 0) -> None:
        """Set the reward of a response: that of `id`, as the agent received it, or the
        latest one of a session."""
        self._call(_native.gateway_reward, reward, session, id, choice)

    def create_key(
        self,
        session: str | None = None,
        *,
        expires_in_s: int | None = None,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_turns: int | None = None,
        max_usd: float | None = None,
        max_body: int | None = None,
        max_concurrent: int | None = None,
        max_per_minute: int | None = None,
        may_reward: bool | None = None,
        certificate: str | None = None,
    ) -> Key:
        """A key that samples in one session only. The gateway must have a key itself.
        `certificate` binds the key to the certificate of a client: "sha256:HEX",
        "DNS:NAME", "URI:TEXT" or "CN:TEXT"."""
        options = dict(
            session=session, expires_in_s=expires_in_s, max_requests=max_requests, max_tokens=max_tokens,
            max_turns=max_turns, max_usd=max_usd, max_body=max_body, max_concurrent=max_concurrent,
            max_per_minute=max_per_minute, may_reward=may_reward, certificate=certificate,
        )  # fmt: skip
        return Key(*self._call(_native.gateway_key_create, options))

    def rotate_key(self, id: str) -> Key:
        """A new secret; the old one ends at once."""
        return Key(id, self._call(_native.gateway_key_rotate, id))

    def revoke_key(self, id: str) -> None:
        self._call(_native.gateway_key_revoke, id)

    def keys(self) -> list[dict[str, Any]]:
        """All keys with their limits and use, without secrets."""
        return _lines(self._call(_native.gateway_keys))

    def datums(self, session: str | None = None, *, rewarded: bool = False) -> list[dict[str, Any]]:
        """The record, one example for each branch of a conversation, as dicts that
        `tnk lint` reads. `rewarded` leaves out branches without a reward."""
        return _lines(self._call(_native.gateway_datums, session, rewarded))

    def examples(self, session: str | None = None, *, rewarded: bool = False) -> list[Example]:
        """The same as examples for forward_backward(), with the loss
        "importance_sampling"."""
        return [_example(line) for line in self.datums(session, rewarded=rewarded)]

    def stats(self) -> dict[str, int]:
        """The counters of tnk_gateway_stats_t."""
        found: dict[str, int] = self._call(_native.gateway_info)[1]
        return found

    def leave(self) -> None:
        """Tell load balancers that this gateway will end; see drain()."""
        self._call(_native.gateway_leave, False)

    def drain(self) -> None:
        """Accept no more connections, and finish the requests in progress."""
        self._call(_native.gateway_leave, True)

    def close(self) -> APIFuture[None]:
        """Close it. When the future is done, all answered turns are on disk."""
        if self._is_closed or self._generation != _future.generation:
            return _future.completed()
        where = _future.threads_pump() if _future.running_loop() is None else _future.pump()
        future = _future.register(where, _future.NONE, None)
        try:
            _native.gateway_close(where.native, future._tag, self._id)
        except BaseException as error:
            return _future.failed(where, future, error)
        self._is_closed = True
        return future

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close().result()

    async def __aenter__(self) -> Gateway:
        return self

    async def __aexit__(self, kind: Any, value: Any, trace: Any) -> None:
        await self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a gateway cannot be pickled")


def _lines(lines: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def _spans(spans: list[dict[str, Any]]) -> list[Any]:
    names = {"prompt": "PromptProvenanceSpan", "sampled": "SampledProvenanceSpan"}
    return [
        _types.get(names[span["kind"]])(
            sequence_id=span["sequence_id"], offset=span["offset"], length=span["length"]
        )
        for span in spans
    ]


def _example(line: dict[str, Any]) -> Example:
    tokens = [token for chunk in line["model_input"]["chunks"] for token in chunk["tokens"]]
    inputs = {
        name: _types.get("TensorData")(data=values["data"], dtype=values["dtype"], shape=[len(values["data"])])
        for name, values in line["loss_fn_inputs"].items()
    }
    datum = _types.get("Datum")(model_input=_types.get("ModelInput").from_ints(tokens), loss_fn_inputs=inputs)
    if "model_input_spans" in line and hasattr(datum, "with_provenance"):
        datum = datum.with_provenance(_spans(line["model_input_spans"]), _spans(line["loss_fn_input_spans"]))
    return Example(line["session"], line["turns"], datum)
