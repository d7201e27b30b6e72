# SPDX-License-Identifier: MIT
"""Service, training and sampling clients, with the methods of the official client."""
from __future__ import annotations

import base64
import functools
import json
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from . import _future, _loss, _native, _results, _types
from ._future import HANDLE, LOGPROBS, METRICS, NONE, PASS, PATH, SAMPLES, SAVED, APIFuture

if TYPE_CHECKING:
    from ._compat_types import (
        ForwardBackwardOutput,
        GetInfoResponse,
        LoadWeightsResponse,
        OptimStepResponse,
        SampleResponse,
        SaveWeightsExternalResponse,
        SaveWeightsForSamplerResponse,
        SaveWeightsResponse,
    )
    from ._rest import RestClient
    from .observe import Event

_OPTIMIZERS = {"adamw": 0, "dimuon": 1}
CONSOLE = "https://tinker.thinkingmachines.ai"
KIMI = {
    "moonshotai/Kimi-K2-Thinking": "612681931a8c906ddb349f8ad0f582cb552189cd",
    "moonshotai/Kimi-K2.5": "4d01dfe0332d63057c186e0b262165819efb6611",
    "moonshotai/Kimi-K2.6": "b5aabbfb20227ed42becbf5541dbffd213942c58",
    "moonshotai/Kimi-K3": "f831ab66814297da540d832a5235f8e904f29d06",
}


T = TypeVar("T")


class ClientFuture(APIFuture[T]):
    """A future of a client. As in the official client, its methods can be called as if
    it were the client; they wait for it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class BackcompatTrainingClientFuture(ClientFuture["TrainingClient"]):
    __slots__ = ()


class BackcompatSamplingClientFuture(ClientFuture["SamplingClient"]):
    __slots__ = ()


F = TypeVar("F", bound="ClientFuture[Any]")


def _as(cls: type[F], future: APIFuture[Any]) -> F:
    future.__class__ = cls
    return cast(F, future)


@functools.cache
def load_tokenizer(model: str, tokenizer_id: str | None = None) -> Any:
    """The tokenizer of transformers for a model."""
    from transformers import AutoTokenizer

    model = model.partition(":")[0]
    name = tokenizer_id
    if name is None and model.startswith("meta-llama/Llama-3"):
        name = "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"
    name = name or "/".join(model.split("/")[:2])
    if name.startswith(("TML/", "thinkingmachines/")):
        return _tml_tokenizer(name)
    name = name.removesuffix("-Text-Only") if name in ("moonshotai/Kimi-K2.5-Text-Only",) else name
    more = {"trust_remote_code": True, "revision": KIMI[name]} if name in KIMI else {}
    return AutoTokenizer.from_pretrained(name, fast=True, **more)


def _tml_tokenizer(name: str) -> Any:
    try:
        from tml_tokenizers.tinker_tokenizers import get_tinker_tokenizer
    except ImportError as error:
        raise RuntimeError(f"the tokenizer {name} needs the package tml-renderers") from error
    return get_tinker_tokenizer(name)


def _optimizer(config: Any) -> dict[str, Any]:
    """Members `optimizer` and `optimizer_json` of a create call."""
    if config is None:
        return {}
    kind = _OPTIMIZERS.get(config.type, 2)
    return {"optimizer": kind, "optimizer_json": config.model_dump_json() if kind == 2 else None}


def _step(params: Any) -> dict[str, Any]:
    kind = getattr(params, "type", "adamw")
    if kind == "adamw":
        names: tuple[str, ...] = ("learning_rate", "beta1", "beta2", "eps", "weight_decay", "grad_clip_norm")
    elif kind == "dimuon":
        names = ("learning_rate", "beta1", "grad_clip_norm")
    else:
        return {"optimizer": 2, "json": params.model_dump_json()}
    return {"optimizer": _OPTIMIZERS[kind], **{name: float(getattr(params, name)) for name in names}}


class _Handle:
    """A client of libtnk. The promise that made it keeps the handle valid."""

    _accessor = ""

    def __init__(self, service: ServiceClient, promise: Any) -> None:
        self._service = service
        self._promise = promise
        self._generation = _future.generation
        self._address = _future.call(self._accessor, promise)
        if not self._address:
            raise _closed()

    @property
    def _handle(self) -> int:
        if self._generation != _future.generation:
            raise _forked()
        return self._address

    @property
    def holder(self) -> ServiceClient:
        return self._service

    def get_telemetry(self) -> None:
        """This client sends no telemetry."""

    def _start(self, reader: int, read: Any, function: str, *arguments: Any) -> APIFuture[Any]:
        return _future.start(reader, read, function, self._handle, *arguments)


def _closed() -> BaseException:
    return RuntimeError("ServiceClient is closed")


def _forked() -> BaseException:
    return RuntimeError("this client belongs to the parent process; make a new ServiceClient in a forked child")


class SamplingClient(_Handle):
    """Samples from one set of weights."""

    _accessor = "tnk_promise_sampling"

    def __init__(self, service: ServiceClient, promise: Any) -> None:
        super().__init__(service, promise)
        where = _future.threads_pump().native
        self._base_model: str = _future.native(_native.record, where, "string", "tnk_sampling_base_model", self._address)
        self._sampling_session_id = _future.native(_native.record, where, "string", "tnk_sampling_id", self._address)

    def sample(
        self,
        prompt: Any,
        num_samples: int,
        sampling_params: Any,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_prompt_logprobs: Any = None,
        prompt_alt_tokens_k: int = 0,
        prompt_logprobs_last_n: int | None = None,
    ) -> APIFuture[SampleResponse]:
        """Sample; the future has a SampleResponse."""
        options: dict[str, Any] = {"n_samples": num_samples}
        if include_prompt_logprobs:
            options["prompt_logprobs"] = True
        if topk_prompt_logprobs:
            options["topk_prompt_logprobs"] = topk_prompt_logprobs
        if topk_sample_logprobs:
            options["topk_sample_logprobs"] = topk_sample_logprobs
        if prompt_alt_tokens_k:
            options["prompt_alt_tokens_k"] = _not_negative("prompt_alt_tokens_k", prompt_alt_tokens_k)
        if prompt_logprobs_last_n is not None:
            if not include_prompt_logprobs:
                raise ValueError("prompt_logprobs_last_n needs include_prompt_logprobs")
            options["prompt_logprobs_last_n"] = _positive("prompt_logprobs_last_n", prompt_logprobs_last_n)
        if target_prompt_logprobs is not None:
            _check_targets(target_prompt_logprobs)
        p = sampling_params
        params = (p.max_tokens, p.seed, p.temperature, p.top_k, p.top_p, p.stop)
        where = _future.pump()
        future = _future.register(where, SAMPLES, _results.samples)
        try:
            future._operation = where.native.sample(
                future._tag, self._handle, prompt, params, options, target_prompt_logprobs
            )
        except BaseException as error:
            return _future.failed(where, future, error)
        return future

    async def sample_async(self, *args: Any, **named: Any) -> SampleResponse:
        return await self.sample(*args, **named)

    def compute_logprobs(self, prompt: Any, prompt_logprobs_last_n: int | None = None) -> APIFuture[list[float | None]]:
        """The logprob of each prompt token; None where there is none."""
        options = {}
        if prompt_logprobs_last_n is not None:
            options["last_n"] = _positive("prompt_logprobs_last_n", prompt_logprobs_last_n)
        where = _future.pump()
        future = _future.register(where, LOGPROBS, None)
        try:
            future._operation = where.native.logprobs(future._tag, self._handle, prompt, options)
        except BaseException as error:
            return _future.failed(where, future, error)
        return future

    async def compute_logprobs_async(self, prompt: Any, prompt_logprobs_last_n: int | None = None) -> list[float | None]:
        return await self.compute_logprobs(prompt, prompt_logprobs_last_n)

    def get_tokenizer(self) -> Any:
        return load_tokenizer(self._base_model)

    def get_base_model(self) -> str:
        return self._base_model

    async def get_base_model_async(self) -> str:
        return self._base_model

    def get_sampler_handle(self) -> str:
        """A string from which another process can make a client of the same sampler. It
        has no key."""
        where = _future.threads_pump().native
        found = _future.native(_native.record, where, "string", "tnk_sampling_export", self._handle)
        if found is None:
            raise _closed()
        return str(found)

    @staticmethod
    def from_sampler_handle(handle: str, *, api_key: str | None = None) -> SamplingClient:
        try:
            fields = json.loads(base64.urlsafe_b64decode(handle))
            base_url = fields["holder"].get("base_url")
        except (ValueError, KeyError, AttributeError) as error:
            raise ValueError("this is no handle of get_sampler_handle()") from error
        return _from_handle(handle, base_url, api_key)

    def __reduce__(self) -> Any:
        return _from_handle, (self.get_sampler_handle(), self._service._base_url, self._service._api_key)


def _not_negative(name: str, value: int) -> int:
    if value < 0:
        raise ValueError(f"{name} must be 0 or greater, got {value}")
    return value


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be 1 or greater, got {value}")
    return value


def _check_targets(tensor: Any) -> None:
    if tensor.dtype != "int64":
        raise ValueError(f"target_prompt_logprobs must be an int64 tensor of token ids, got {tensor.dtype}")
    if tensor.shape is None or len(tensor.shape) != 2:
        raise ValueError(f"target_prompt_logprobs must be 2-D, [len(prompt) - 1, K], got shape {tensor.shape}")


@functools.cache
def _shared_service(base_url: str | None, api_key: str | None, generation: int) -> ServiceClient:
    return ServiceClient(base_url=base_url, api_key=api_key)


def _from_handle(handle: str, base_url: str | None, api_key: str | None) -> SamplingClient:
    service = _shared_service(base_url, api_key, _future.generation)
    options = ("tnk_sampling_options_t", {"exported": handle})
    where = _future.threads_pump()
    future = _future.start(
        HANDLE,
        functools.partial(SamplingClient, service),
        "tnk_service_create_sampling",
        service._handle,
        options,
        where=where,
    )
    found: SamplingClient = future.result()
    return found


class TrainingClient(_Handle):
    """Trains one model. Its operations run in the order of the calls."""

    _accessor = "tnk_promise_training"

    def __init__(self, service: ServiceClient, promise: Any) -> None:
        super().__init__(service, promise)
        self._info = _future.native(
            _native.filled,
            _future.threads_pump().native,
            "tnk_training_info_t",
            "tnk_training_info",
            self._address,
        )
        self.model_id: str = self._info["model_id"] or ""

    def _pass(self, is_backward: bool, data: Any, loss_fn: Any, config: Mapping[str, Any] | None) -> APIFuture[Any]:
        rows = data if isinstance(data, list) else list(data)
        if not rows:
            raise ValueError("No data provided")
        options = {"loss_fn": loss_fn, "settings": dict(config) if config is not None else None}
        where = _future.pump()
        future = _future.register(where, PASS, _results.output)
        try:
            future._operation = where.native.start_pass(future._tag, is_backward, self._handle, rows, options)
        except BaseException as error:
            return _future.failed(where, future, error)
        return future

    def forward(
        self, data: Any, loss_fn: Any = "cross_entropy", loss_fn_config: Mapping[str, Any] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Losses and logprobs without gradients; the future has a ForwardBackwardOutput.

        Arrays of the data are read in place. Do not change them before the future is
        done."""
        return self._pass(False, data, loss_fn, loss_fn_config)

    async def forward_async(
        self, data: Any, loss_fn: Any = "cross_entropy", loss_fn_config: Mapping[str, Any] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        return self.forward(data, loss_fn, loss_fn_config)

    def forward_backward(
        self, data: Any, loss_fn: Any = "cross_entropy", loss_fn_config: Mapping[str, Any] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """As forward(), and add the gradients to those for the next optim_step()."""
        return self._pass(True, data, loss_fn, loss_fn_config)

    async def forward_backward_async(
        self, data: Any, loss_fn: Any = "cross_entropy", loss_fn_config: Mapping[str, Any] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        return self.forward_backward(data, loss_fn, loss_fn_config)

    def forward_backward_custom(
        self, data: Any, loss_fn: Any, *, loss_type_input: Literal["logprobs"] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """A pass with a loss of PyTorch: loss_fn(data, logprobs) returns the loss and a
        dict of metrics. It runs on a thread of its own."""
        if loss_type_input not in (None, "logprobs"):
            raise ValueError(f"Unsupported loss_type_input={loss_type_input!r}")
        return _loss.start(self, list(data), loss_fn)

    async def forward_backward_custom_async(
        self, data: Any, loss_fn: Any, *, loss_type_input: Literal["logprobs"] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        return self.forward_backward_custom(data, loss_fn, loss_type_input=loss_type_input)

    def optim_step(self, optim_params: Any = None, *, adam_params: Any = None) -> APIFuture[OptimStepResponse]:
        """Apply the gradients; the future has an OptimStepResponse."""
        if optim_params is not None and adam_params is not None:
            raise ValueError("Specify optim_params or legacy adam_params, not both")
        params = optim_params if optim_params is not None else adam_params
        if params is None or not hasattr(params, "model_dump_json"):
            raise TypeError("Expected AdamParams or OptimParamsBase")
        return self._start(METRICS, _results.step, "tnk_training_optim_step", ("tnk_optim_t", _step(params)))

    async def optim_step_async(self, optim_params: Any = None, *, adam_params: Any = None) -> APIFuture[OptimStepResponse]:
        return self.optim_step(optim_params, adam_params=adam_params)

    def _save(self, made: str, function: str, name: str, **options: Any) -> APIFuture[Any]:
        return self._start(PATH, _results.made(made), function, name, ("tnk_save_options_t", options))

    def save_state(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: dict[str, str] | None = None,
    ) -> APIFuture[SaveWeightsResponse]:
        return self._save(
            "SaveWeightsResponse",
            "tnk_training_save_state",
            name,
            ttl_seconds=ttl_seconds,
            overwrite=True if overwrite else None,
            user_metadata=user_metadata,
        )

    async def save_state_async(self, *args: Any, **named: Any) -> APIFuture[SaveWeightsResponse]:
        return self.save_state(*args, **named)

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None, user_metadata: dict[str, str] | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        return self._save(
            "SaveWeightsForSamplerResponse",
            "tnk_training_save_weights_for_sampler",
            name,
            ttl_seconds=ttl_seconds,
            user_metadata=user_metadata,
        )

    async def save_weights_for_sampler_async(self, *args: Any, **named: Any) -> APIFuture[SaveWeightsForSamplerResponse]:
        return self.save_weights_for_sampler(*args, **named)

    def save_weights_external(
        self, name: str, ttl_seconds: int | None = None, age_encryption_recipients: list[str] | None = None
    ) -> APIFuture[SaveWeightsExternalResponse]:
        return self._save(
            "SaveWeightsExternalResponse",
            "tnk_training_save_weights_external",
            name,
            ttl_seconds=ttl_seconds,
            recipients=age_encryption_recipients,
        )

    async def save_weights_external_async(self, *args: Any, **named: Any) -> APIFuture[SaveWeightsExternalResponse]:
        return self.save_weights_external(*args, **named)

    def _load(self, path: str, optimizer: bool, weights_access_token: str | None) -> APIFuture[Any]:
        options = {
            "path": path,
            "with_optimizer": True if optimizer else None,
            "weights_access_token": weights_access_token,
        }
        return self._start(
            PATH, _results.made("LoadWeightsResponse"), "tnk_training_load_state", ("tnk_load_options_t", options)
        )

    def load_state(self, path: str, weights_access_token: str | None = None) -> APIFuture[LoadWeightsResponse]:
        return self._load(path, False, weights_access_token)

    async def load_state_async(self, path: str, weights_access_token: str | None = None) -> APIFuture[LoadWeightsResponse]:
        return self._load(path, False, weights_access_token)

    def load_state_with_optimizer(self, path: str, weights_access_token: str | None = None) -> APIFuture[LoadWeightsResponse]:
        return self._load(path, True, weights_access_token)

    async def load_state_with_optimizer_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        return self._load(path, True, weights_access_token)

    def get_info(self) -> GetInfoResponse:
        info = self._info
        names = {"adamw": "AdamOptimizerConfig", "dimuon": "DimuonOptimizerConfig"}
        config = names.get(info["optimizer"] or "adamw")
        more = {"optimizer_config": _types.get(config)()} if config else {}
        found: GetInfoResponse = _types.get("GetInfoResponse")(
            model_data=_types.get("ModelData")(
                arch=info["arch"], model_name=info["base_model"], tokenizer_id=info["tokenizer_id"]
            ),
            model_id=self.model_id,
            is_lora=True if info["lora_rank"] else None,
            lora_rank=info["lora_rank"] or None,
            model_name=info["base_model"],
            **more,
        )
        return found

    async def get_info_async(self) -> GetInfoResponse:
        return self.get_info()

    def get_tokenizer(self) -> Any:
        return load_tokenizer(self._info["base_model"], self._info["tokenizer_id"])

    def get_console_url(self) -> str:
        return f"{CONSOLE}/training_runs/{self.model_id}"

    def create_sampling_client(
        self, model_path: str, retry_config: Any = None, record_stability_info: bool = False
    ) -> BackcompatSamplingClientFuture:
        return self._service.create_sampling_client(
            model_path=model_path, record_stability_info=record_stability_info
        )

    async def create_sampling_client_async(
        self, model_path: str, retry_config: Any = None, record_stability_info: bool = False
    ) -> SamplingClient:
        return await self.create_sampling_client(model_path, retry_config, record_stability_info)

    def save_weights_and_get_sampling_client(
        self,
        name: str | None = None,
        retry_config: Any = None,
        record_stability_info: bool = False,
        kind: Literal["snapshot", "inflight"] = "snapshot",
    ) -> BackcompatSamplingClientFuture:
        """Sample from the current weights; a future of a SamplingClient."""
        if name is not None:
            warnings.warn("`name` has no effect: these weights have no name", DeprecationWarning, stacklevel=2)
        kinds = {"snapshot": 0, "inflight": 1}
        options = {"record_stability_info": True if record_stability_info else None}
        return _as(
            BackcompatSamplingClientFuture,
            self._start(
                HANDLE,
                functools.partial(SamplingClient, self._service),
                "tnk_training_save_weights_and_get_sampling",
                kinds[kind],
                ("tnk_sampling_options_t", options),
            ),
        )

    async def save_weights_and_get_sampling_client_async(self, *args: Any, **named: Any) -> SamplingClient:
        return await self.save_weights_and_get_sampling_client(*args, **named)

    # ---- Additions of tnk ----

    def ready(self) -> APIFuture[Any]:
        """Wait until the model has been restored after a loss (see `recovery` of
        ServiceClient): (path, steps, passes). Continue with the next step."""
        return self._start(SAVED, None, "tnk_training_ready")

    def unload(self) -> APIFuture[None]:
        """Remove the model from the service."""
        return self._start(NONE, None, "tnk_training_unload")


class ServiceClient:
    """A connection to a service. Without arguments, as the environment says.

    The first call that needs it opens the connection. Further arguments are options of
    tnk_service_options_t, such as recovery=True, ca_file, proxy and dump_file.

    observer(event) is called for every step of every operation: see tnk.observe.
    """

    def __init__(
        self,
        user_metadata: dict[str, str] | None = None,
        project_id: str | None = None,
        *,
        display_name: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        default_headers_overrides: Mapping[str, str] | None = None,
        observer: Callable[[Event], object] | None = None,
        **options: Any,
    ) -> None:
        if observer is not None and not callable(observer):
            raise TypeError(f"observer must be callable, got {type(observer).__name__}")
        if project_id is None:
            project_id = os.environ.get("TINKER_PROJECT_ID") or None
        self._project_id = project_id
        self._base_url = base_url
        self._api_key = api_key
        self._options = {
            "user_metadata": user_metadata,
            "project_id": project_id,
            "display_name": display_name,
            "base_url": base_url,
            "api_key": api_key,
            "headers": dict(default_headers_overrides) if default_headers_overrides else None,
            **options,
        }
        self._observer = observer
        self._observer_key = 0
        self._address = 0
        self._generation = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def _handle(self) -> int:
        if self._closed:
            raise _closed()
        if not self._address:
            with self._lock:
                if not self._address:
                    where = _future.threads_pump().native
                    self._generation = _future.generation
                    self._address = self._open(where)
        if self._generation != _future.generation:
            raise _forked()
        return self._address

    def _open(self, where: _native.Queue) -> int:
        if self._observer is None:
            return int(_future.native(_native.open_service, where, self._options, 0))
        from . import observe

        key = observe.add(self._observer)
        try:
            address = int(_future.native(_native.open_service, where, self._options, key))
        except BaseException:
            observe.remove(key)
            raise
        self._observer_key = key
        return address

    @property
    def holder(self) -> ServiceClient:
        return self

    def __enter__(self) -> ServiceClient:
        if self._closed:
            raise _closed()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        status = "success" if kind is None else "errored" if issubclass(kind, Exception) else "interrupted"
        self.close(status).result()

    def close(self, status: str = "success", detail: str | None = None) -> APIFuture[None]:
        """Close the service and its clients. Operations that have not ended fail."""
        with self._lock:
            address, self._address = self._address, 0
            was_closed, self._closed = self._closed, True
        if was_closed or not address:
            return _future.completed()
        try:
            closed = _close(address, 0)
        except MemoryError:
            # Another call may have some.
            self._address, self._closed = address, False
            raise
        if self._observer_key:
            from . import observe

            closed._add_waiter(observe.Removed(self._observer_key))
        return closed

    def get_session_id(self) -> str | None:
        where = _future.threads_pump().native
        found = _future.native(_native.record, where, "string", "tnk_service_session_id", self._handle)
        return str(found) if found is not None else None

    def get_telemetry(self) -> None:
        """This client sends no telemetry."""

    def get_console_url(self) -> str:
        session = self.get_session_id() if self._address else None
        return f"{CONSOLE}/sessions/{session}" if session else f"{CONSOLE}/sessions"

    def create_rest_client(self) -> RestClient:
        from ._rest import RestClient

        return RestClient(self)

    def get_server_capabilities(self) -> Any:
        return self.create_rest_client().get_server_capabilities().result()

    async def get_server_capabilities_async(self) -> Any:
        return await self.create_rest_client().get_server_capabilities()

    def copy_weights(
        self, path: str, *, ttl_seconds: int | None = None, weights_access_token: str | None = None
    ) -> APIFuture[str]:
        return self.create_rest_client().copy_weights(
            path, self._project_id, ttl_seconds=ttl_seconds, weights_access_token=weights_access_token
        )

    def _training(self, function: str, record: str, options: dict[str, Any]) -> BackcompatTrainingClientFuture:
        future = _future.start(
            HANDLE, functools.partial(TrainingClient, self), function, self._handle, (record, options)
        )
        return _as(BackcompatTrainingClientFuture, future)

    def create_lora_training_client(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: dict[str, str] | None = None,
        optimizer: Any = None,
    ) -> BackcompatTrainingClientFuture:
        """Create a model; a future of a TrainingClient."""
        return self._training(
            "tnk_service_create_lora",
            "tnk_lora_options_t",
            {
                "base_model": base_model,
                "rank": rank,
                "seed": seed,
                "train_mlp": train_mlp,
                "train_attn": train_attn,
                "train_unembed": train_unembed,
                "user_metadata": user_metadata,
                **_optimizer(optimizer),
            },
        )

    async def create_lora_training_client_async(self, *args: Any, **named: Any) -> TrainingClient:
        return await self.create_lora_training_client(*args, **named)

    def _restore(self, with_optimizer: bool, path: str, optimizer: Any, **options: Any) -> BackcompatTrainingClientFuture:
        options.update(path=path, with_optimizer=True if with_optimizer else None, **_optimizer(optimizer))
        return self._training("tnk_service_restore", "tnk_restore_options_t", options)

    def create_training_client_from_state(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        optimizer: Any = None,
    ) -> BackcompatTrainingClientFuture:
        return self._restore(
            False,
            path,
            optimizer,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
        )

    async def create_training_client_from_state_async(self, *args: Any, **named: Any) -> TrainingClient:
        return await self.create_training_client_from_state(*args, **named)

    def create_training_client_from_state_with_optimizer(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
    ) -> BackcompatTrainingClientFuture:
        return self._restore(
            True,
            path,
            None,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
        )

    async def create_training_client_from_state_with_optimizer_async(self, *args: Any, **named: Any) -> TrainingClient:
        return await self.create_training_client_from_state_with_optimizer(*args, **named)

    def create_sampling_client(
        self,
        model_path: str | None = None,
        base_model: str | None = None,
        retry_config: Any = None,
        record_stability_info: bool = False,
    ) -> BackcompatSamplingClientFuture:
        """A future of a SamplingClient. `retry_config` has no effect: libtnk retries as
        `retry_samples` and `patience_ms` of ServiceClient say."""
        if model_path is None and base_model is None:
            raise ValueError("Either model_path or base_model must be provided")
        options = {
            "model_path": model_path,
            "base_model": base_model,
            "record_stability_info": True if record_stability_info else None,
        }
        future = _future.start(
            HANDLE,
            functools.partial(SamplingClient, self),
            "tnk_service_create_sampling",
            self._handle,
            ("tnk_sampling_options_t", options),
        )
        return _as(BackcompatSamplingClientFuture, future)

    async def create_sampling_client_async(self, *args: Any, **named: Any) -> SamplingClient:
        return await self.create_sampling_client(*args, **named)

    def create_custom_loss(self, fn: Callable[..., Any], input_ranks: Mapping[str, int]) -> APIFuture[Any]:
        """A loss that the service runs, if it can; else it runs here."""
        return _loss.create(self, fn, input_ranks)

    # ---- Additions of tnk ----

    def dump(self, as_json: bool = False) -> str:
        """The state of the service: counters, connections, queues."""
        found: str = _future.native(_native.dump, _future.threads_pump().native, self._handle, as_json)
        return found

    def totals(self) -> dict[str, Any]:
        """Tokens, requests, bytes and cost so far, see tnk_totals_t."""
        where = _future.threads_pump().native
        found: dict[str, Any] = _future.native(
            _native.filled, where, "tnk_totals_t", "tnk_service_totals", self._handle
        )
        return found

    def set_budget(self, **budget: Any) -> None:
        """Set max_tokens, max_usd, prices (a list of dicts) or prices_file."""
        where = _future.threads_pump().native
        _future.native(_native.set_budget, where, self._handle, budget)


def _close(address: int, kind: int) -> APIFuture[None]:
    where = _future.threads_pump() if _future.running_loop() is None else _future.pump()
    future = _future.register(where, NONE, None)
    try:
        _native.close(where.native, future._tag, address, kind)
    except BaseException as error:
        return _future.failed(where, future, error)
    return future
