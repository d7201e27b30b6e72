# SPDX-License-Identifier: MIT
"""The types of the official client, for programs without it. They have the same names
and members; they check less."""
from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Union

ModelID = str
TensorDtype = Literal["int64", "float32"]
StopReason = Literal["length", "stop"]
CheckpointType = Literal["training", "sampler", "external"]
SamplingClientKind = Literal["snapshot", "inflight"]
LossFnType = Literal[
    "cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo", "stable_reinforce", "custom"
]
CustomLossInputRank = Literal[0, 1, 2]
CustomLossNodeOp = Literal["placeholder", "get_attr", "call_function", "call_method", "call_module", "output"]


class _Model:
    """Methods that programs call on the models of the official client."""

    @classmethod
    def model_validate(cls, values: Any) -> Any:
        return values if isinstance(values, cls) else cls(**values)

    def model_dump(self, mode: str = "python", exclude_none: bool = False) -> dict[str, Any]:
        found = asdict(self)  # type: ignore[call-overload]
        return {k: v for k, v in found.items() if not exclude_none or v is not None}

    def model_dump_json(self) -> str:
        return json.dumps(self.model_dump(), default=str)

    def model_copy(self, update: dict[str, Any] | None = None) -> Any:
        return replace(self, **(update or {}))  # type: ignore[type-var]


class RequestErrorCategory(enum.StrEnum):
    Unknown = "unknown"
    Server = "server"
    User = "user"


# ---- Inputs ----


@dataclass
class EncodedTextChunk(_Model):
    tokens: Any
    type: str = "encoded_text"

    @property
    def length(self) -> int:
        return len(self.tokens)


@dataclass
class ImageChunk(_Model):
    data: bytes
    format: Literal["png", "jpeg"]
    expected_tokens: int | None = None
    type: str = "image"

    @property
    def length(self) -> int:
        if self.expected_tokens is None:
            raise ValueError("ImageChunk has a length only with expected_tokens")
        return self.expected_tokens


@dataclass
class ImageAssetPointerChunk(_Model):
    format: Literal["png", "jpeg"]
    location: str
    expected_tokens: int | None = None
    type: str = "image_asset_pointer"

    @property
    def length(self) -> int:
        if self.expected_tokens is None:
            raise ValueError("ImageAssetPointerChunk has a length only with expected_tokens")
        return self.expected_tokens


@dataclass
class DmelChunk(_Model):
    dmel: bytes
    type: str = "dmel"


ModelInputChunk = Union[EncodedTextChunk, ImageAssetPointerChunk, ImageChunk, DmelChunk]


@dataclass
class ModelInput(_Model):
    chunks: list[Any]

    @classmethod
    def from_ints(cls, tokens: Any) -> ModelInput:
        return cls([EncodedTextChunk(tokens)])

    @classmethod
    def empty(cls) -> ModelInput:
        return cls([])

    def to_ints(self) -> list[int]:
        if not all(isinstance(chunk, EncodedTextChunk) for chunk in self.chunks):
            raise ValueError("to_ints() needs chunks of text only")
        return [int(token) for chunk in self.chunks for token in chunk.tokens]

    @property
    def length(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

    def append(self, chunk: Any) -> ModelInput:
        return ModelInput([*self.chunks, chunk])

    def append_int(self, token: int) -> ModelInput:
        return self.append(EncodedTextChunk([token]))


def _numbers(data: Any, dtype: str) -> Any:
    """A buffer of numbers: an array of numpy if it is given or installed."""
    name = {"int64": "q", "float32": "f"}[dtype]
    try:
        import numpy as np
    except ImportError:
        import array

        return array.array(name, list(data) if data is not None else [])
    return np.ascontiguousarray(np.asarray(data if data is not None else [], dtype=name))


class TensorData:
    """Numbers with their type and shape, dense or in CSR form."""

    def __init__(
        self,
        data: Any = None,
        dtype: TensorDtype | None = None,
        shape: list[int] | None = None,
        sparse_crow_indices: list[int] | None = None,
        sparse_col_indices: list[int] | None = None,
    ) -> None:
        if dtype is None:
            raise TypeError("TensorData requires `dtype`")
        self.dtype = dtype
        self.shape = shape
        self.sparse_crow_indices = sparse_crow_indices
        self.sparse_col_indices = sparse_col_indices
        self._numpy = _numbers(data, dtype)
        if sparse_crow_indices is None and shape is not None and hasattr(self._numpy, "reshape"):
            self._numpy = self._numpy.reshape(shape)

    def __repr__(self) -> str:
        return f"TensorData(dtype={self.dtype!r}, shape={self.shape!r})"

    @property
    def data(self) -> list[Any]:
        flat = self._numpy.ravel() if hasattr(self._numpy, "ravel") else self._numpy
        return list(flat.tolist())

    @classmethod
    def from_numpy(cls, array: Any) -> TensorData:
        kind = {"f": "float32", "i": "int64", "u": "int64"}.get(array.dtype.kind)
        if kind is None:
            raise ValueError(f"Unsupported numpy dtype: {array.dtype}")
        return cls(array, kind, list(array.shape))  # type: ignore[arg-type]

    @classmethod
    def from_torch(cls, tensor: Any) -> TensorData:
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return cls.from_numpy(tensor.detach().contiguous().numpy())

    @classmethod
    def from_torch_sparse(cls, tensor: Any) -> TensorData:
        rows = tensor.to_sparse_csr()
        values = rows.values().numpy()
        return cls(
            values,
            "float32" if tensor.is_floating_point() else "int64",
            list(tensor.shape),
            rows.crow_indices().tolist(),
            rows.col_indices().tolist(),
        )

    def to_numpy(self) -> Any:
        import numpy as np

        return np.asarray(self._numpy)

    def to_torch(self) -> Any:
        import torch

        return torch.from_numpy(self.to_numpy())

    def tolist(self) -> list[Any]:
        return list(self._numpy.tolist())


_DTYPES = {"target_tokens": "int64"}


def _tensor(name: str, value: Any) -> TensorData:
    if hasattr(value, "sparse_crow_indices"):
        return value  # type: ignore[no-any-return]
    if hasattr(value, "detach"):
        return TensorData.from_torch(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return TensorData.from_numpy(value)
    if isinstance(value, list):
        shape = [len(value)]
        if value and isinstance(value[0], list):
            shape.append(len(value[0]))
        return TensorData(value, _DTYPES.get(name, "float32"), shape)  # type: ignore[arg-type]
    raise TypeError(f"Unsupported loss_fn_inputs value for {name!r}: {type(value).__name__}")


@dataclass(frozen=True, kw_only=True)
class PromptProvenanceSpan:
    sequence_id: str
    offset: int = 0
    length: int


@dataclass(frozen=True, kw_only=True)
class SampledProvenanceSpan:
    sequence_id: str
    offset: int = 0
    length: int


ProvenanceSpans = list[Union[PromptProvenanceSpan, SampledProvenanceSpan]]


@dataclass(frozen=True)
class Datum:
    """A training example: its input, and one value of each loss input per token."""

    model_input: ModelInput
    loss_fn_inputs: dict[str, Any] = field(default_factory=dict)
    model_input_spans: Any = None
    loss_fn_input_spans: Any = None

    def __post_init__(self) -> None:
        inputs = {name: _tensor(name, value) for name, value in self.loss_fn_inputs.items()}
        object.__setattr__(self, "loss_fn_inputs", inputs)

    def with_provenance(self, model_input: Any, loss_fn_inputs: Any) -> Datum:
        return replace(self, model_input_spans=model_input, loss_fn_input_spans=loss_fn_inputs)


@dataclass
class SamplingParams(_Model):
    max_tokens: int | None = None
    seed: int | None = None
    stop: Any = None
    temperature: float = 1
    top_k: int = -1
    top_p: float = 1


@dataclass
class AdamParams(_Model):
    learning_rate: float = 0.0001
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


@dataclass(frozen=True)
class DimuonParams(_Model):
    learning_rate: float
    grad_clip_norm: float = 0.0
    beta1: float = 0.9
    type: str = "dimuon"


OptimParams = Union[AdamParams, DimuonParams]


@dataclass(frozen=True)
class AdamOptimizerConfig(_Model):
    type: str = "adamw"


@dataclass(frozen=True)
class DimuonOptimizerConfig(_Model):
    type: str = "dimuon"
    version: int = 1


OptimizerConfig = Union[AdamOptimizerConfig, DimuonOptimizerConfig]


@dataclass
class LoraConfig(_Model):
    rank: int
    seed: int | None = None
    train_unembed: bool = True
    train_mlp: bool = True
    train_attn: bool = True


@dataclass(frozen=True)
class CustomLossInput(_Model):
    name: str
    rank: int


@dataclass
class CustomLossNode(_Model):
    op: str
    name: str
    target: str
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class CustomLossGraph(_Model):
    nodes: list[CustomLossNode]
    format: int = 1


# ---- Results ----


@dataclass(frozen=True)
class TopkLogprobs:
    token_ids: Any
    logprobs: Any


def _rows(topk: Any) -> list[Any] | None:
    """Pairs of ids and logprobs for each position; None for an empty one."""
    if topk is None:
        return None
    found: list[Any] = []
    for ids, logprobs in zip(topk.token_ids.tolist(), topk.logprobs.tolist()):
        pairs = list(zip(ids, logprobs))
        while pairs and pairs[-1] == (0, -99999.0):
            pairs.pop()
        found.append(pairs or None)
    return found


@dataclass(frozen=True)
class SampledSequence:
    stop_reason: StopReason
    sequence_id: str
    tokens_np: Any = field(default=None, repr=False)
    logprobs_np: Any = field(default=None, repr=False)
    topk_logprobs_np: Any = field(default=None, repr=False)

    @property
    def tokens(self) -> list[int]:
        return self.tokens_np.tolist() if self.tokens_np is not None else []

    @property
    def logprobs(self) -> list[float] | None:
        return self.logprobs_np.tolist() if self.logprobs_np is not None else None

    @property
    def topk_logprobs(self) -> list[Any] | None:
        return _rows(self.topk_logprobs_np)


@dataclass(frozen=True)
class PromptAltTokens:
    tokens: TensorData
    logprobs: TensorData


@dataclass(frozen=True)
class SampleResponse:
    sequences: list[SampledSequence]
    prompt_logprobs_np: Any = field(default=None, repr=False)
    topk_prompt_logprobs_np: Any = field(default=None, repr=False)
    target_prompt_logprobs: TensorData | None = None
    prompt_cache_hit_tokens: int = 0
    prompt_alt_tokens: PromptAltTokens | None = None

    @property
    def prompt_logprobs(self) -> list[float | None] | None:
        if self.prompt_logprobs_np is None:
            return None
        return [None if value != value else value for value in self.prompt_logprobs_np.tolist()]

    @property
    def topk_prompt_logprobs(self) -> list[Any] | None:
        return _rows(self.topk_prompt_logprobs_np)


@dataclass(frozen=True)
class ForwardBackwardOutput:
    loss_fn_output_type: str
    loss_fn_outputs: list[dict[str, TensorData]]
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class OptimStepResponse(_Model):
    metrics: dict[str, float] | None = None


@dataclass
class SaveWeightsResponse(_Model):
    path: str
    type: str | None = None


@dataclass
class SaveWeightsForSamplerResponse(_Model):
    path: str
    type: str | None = None


@dataclass
class SaveWeightsExternalResponse(_Model):
    path: str
    type: str | None = None


@dataclass
class LoadWeightsResponse(_Model):
    path: str | None = None
    type: str | None = None


@dataclass
class ModelData(_Model):
    arch: str | None = None
    model_name: str | None = None
    tokenizer_id: str | None = None


@dataclass
class GetInfoResponse(_Model):
    model_data: ModelData
    model_id: str
    optimizer_config: Any = AdamOptimizerConfig()
    is_lora: bool | None = None
    lora_rank: int | None = None
    model_name: str | None = None
    type: str | None = None


@dataclass
class SupportedModel(_Model):
    model_name: str | None = None
    max_context_length: int | None = None
    trainable: bool | None = None
    sampleable: bool | None = None


@dataclass
class GetServerCapabilitiesResponse(_Model):
    supported_models: list[SupportedModel]


@dataclass
class Checkpoint(_Model):
    checkpoint_id: str
    checkpoint_type: CheckpointType
    time: datetime
    tinker_path: str
    size_bytes: int | None = None
    public: bool = False
    user_metadata: dict[str, str] | None = None
    expires_at: datetime | None = None


@dataclass
class ParsedCheckpointTinkerPath(_Model):
    tinker_path: str
    training_run_id: str
    checkpoint_type: CheckpointType
    checkpoint_id: str

    @classmethod
    def from_tinker_path(cls, tinker_path: str) -> ParsedCheckpointTinkerPath:
        kinds: dict[str, CheckpointType] = {
            "weights": "training",
            "sampler_weights": "sampler",
            "external_weights": "external",
        }
        parts = tinker_path.removeprefix("tinker://").split("/")
        if not tinker_path.startswith("tinker://") or len(parts) != 3 or parts[1] not in kinds:
            raise ValueError(f"Invalid tinker path: {tinker_path}")
        return cls(tinker_path, parts[0], kinds[parts[1]], "/".join(parts[1:]))


@dataclass
class Cursor(_Model):
    offset: int
    limit: int
    total_count: int


@dataclass
class CheckpointsListResponse(_Model):
    checkpoints: list[Checkpoint]
    cursor: Cursor | None = None


@dataclass
class TrainingRun(_Model):
    training_run_id: str
    base_model: str
    model_owner: str
    is_lora: bool
    last_request_time: datetime
    corrupted: bool = False
    lora_rank: int | None = None
    last_checkpoint: Checkpoint | None = None
    last_sampler_checkpoint: Checkpoint | None = None
    user_metadata: dict[str, str] | None = None


@dataclass
class TrainingRunsResponse(_Model):
    training_runs: list[TrainingRun]
    cursor: Cursor


@dataclass
class WeightsInfoResponse(_Model):
    base_model: str
    is_lora: bool
    lora_rank: int | None = None
    train_unembed: bool | None = None
    train_mlp: bool | None = None
    train_attn: bool | None = None
    optimizer_config: Any = AdamOptimizerConfig()


@dataclass
class ExternalWeightsUrlsResponse(_Model):
    urls: dict[str, str]
    expires: datetime


@dataclass
class GetSessionResponse(_Model):
    training_run_ids: list[str]
    sampler_ids: list[str]
    user_metadata: dict[str, str] | None = None
    display_name: str | None = None


@dataclass
class ListSessionsResponse(_Model):
    sessions: list[str]


@dataclass
class OwnSearchOwner(_Model):
    type: str = "own"


@dataclass
class AccessibleSearchOwner(_Model):
    type: str = "accessible"


@dataclass
class UserSearchOwner(_Model):
    owner_urns: list[str]
    type: str = "user"


@dataclass
class ActiveSessionStatusQuery(_Model):
    type: str = "active"


@dataclass
class CancelledSessionStatusQuery(_Model):
    type: str = "cancelled"


@dataclass
class FailedSessionStatusQuery(_Model):
    type: str = "failed"


@dataclass
class ClientFinishedSessionStatusQuery(_Model):
    reasons: list[str] | None = None
    type: str = "client_finished"


@dataclass
class SessionSearchCursor(_Model):
    last_created_at: datetime
    last_session_id: str


@dataclass
class SessionSearchRequest(_Model):
    session_id: str | None = None
    project_ids: list[str] | None = None
    user_metadata: dict[str, str] = field(default_factory=dict)
    display_name: str | None = None
    owner: Any = field(default_factory=OwnSearchOwner)
    statuses: list[Any] | None = None
    limit: int = 50
    cursor: SessionSearchCursor | None = None


@dataclass
class SessionSummary(_Model):
    session_id: str
    created_at: datetime
    owner: str
    project_id: str
    checkpoints_count: int
    status: Any = None
    display_name: str | None = None
    user_metadata: dict[str, str] | None = None
    checkpoint_storage_bytes: int | None = None


@dataclass
class SessionSearchResponse(_Model):
    sessions: list[SessionSummary]
    next_cursor: Any = None


@dataclass
class GetSamplerResponse(_Model):
    sampler_id: str
    base_model: str
    model_path: str | None = None


@dataclass
class WhoamiResponse(_Model):
    user_urn: str
    org_urn: str
    email: str | None = None


@dataclass
class BillingUsageEvent(_Model):
    bucket_start: datetime
    bucket_end: datetime
    event_info: Any
    base_model: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    session_id: str | None = None
    project_id: str | None = None
    estimated_cost_usd: float | None = None
    effective_rate_usd_per_million_tokens: float | None = None
    effective_rate_usd_per_gigabyte_month: float | None = None


@dataclass
class BillingUsageSession(_Model):
    user_metadata: dict[str, str] | None = None


@dataclass
class BillingUsageResponse(_Model):
    data: list[BillingUsageEvent]
    sessions: dict[str, BillingUsageSession] = field(default_factory=dict)
    cost_data_through: datetime | None = None


@dataclass
class CurrentCheckpointStorageUsageItem(_Model):
    checkpoint_count: int
    size_bytes: int
    size_gigabytes: float
    project_id: str | None = None
    org_user_urn: str | None = None
    user_email: str | None = None
    user_name: str | None = None
    estimated_monthly_cost_usd: float | None = None


@dataclass
class CurrentCheckpointStorageUsageResponse(_Model):
    data: list[CurrentCheckpointStorageUsageItem]
    effective_rate_usd_per_gigabyte_month: float | None = None


@dataclass
class AuditLogEntry(_Model):
    timestamp: datetime
    event: str
    event_details: dict[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    tinker_path: str | None = None
    purpose: str | None = None


@dataclass
class AuditLogResponse(_Model):
    entries: list[AuditLogEntry]
