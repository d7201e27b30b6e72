# SPDX-License-Identifier: MIT
"""The Tinker training API, on libtnk.

    service = tnk.ServiceClient(base_url="http://127.0.0.1:8000", api_key="tml-local")
    training = service.create_lora_training_client("tnk/byte-lm", rank=8).result()
    passed = training.forward_backward([datum], "cross_entropy")
    stepped = training.optim_step(tnk.AdamParams(learning_rate=1e-3))
    print(passed.result().metrics, stepped.result())

Names and results are those of the official client, `tinker`. install() puts this
package in its place; `python -m tnk run SCRIPT` does so for one program. The types and
exceptions are those of the official package if it is installed.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._clients import (
    BackcompatSamplingClientFuture,
    BackcompatTrainingClientFuture,
    SamplingClient,
    ServiceClient,
    TrainingClient,
)
from ._future import APIFuture
from ._install import install
from ._native import version as __version__

if TYPE_CHECKING:
    from . import _compat_types as types
    from . import chat, gateway, observe, rl
    from ._compat_errors import (
        APIConnectionError,
        APIError,
        APIResponseValidationError,
        APIStatusError,
        APITimeoutError,
        AuthenticationError,
        BadRequestError,
        BillingError,
        ConflictError,
        InternalServerError,
        NotFoundError,
        PermissionDeniedError,
        RateLimitError,
        RequestFailedError,
        TinkerError,
        UnprocessableEntityError,
    )
    from ._compat_types import (
        AdamOptimizerConfig,
        AdamParams,
        Checkpoint,
        Datum,
        DimuonOptimizerConfig,
        DimuonParams,
        DmelChunk,
        EncodedTextChunk,
        ForwardBackwardOutput,
        LoraConfig,
        ModelInput,
        OptimStepResponse,
        ParsedCheckpointTinkerPath,
        PromptProvenanceSpan,
        SampledProvenanceSpan,
        SampledSequence,
        SampleResponse,
        SamplingParams,
        TensorData,
        TrainingRun,
    )
    from ._ledger import Ledger
    from ._rest import AdminClient, ExperimentalWarning, RestClient

    TnkError = TinkerError
    TnkValueError = TinkerError

__title__ = "tnk"

# Loaded when they are first used: an import takes no numpy, asyncio or types.
_TYPES = (
    "AdamOptimizerConfig",
    "AdamParams",
    "Checkpoint",
    "CheckpointType",
    "Datum",
    "DimuonOptimizerConfig",
    "DimuonParams",
    "DmelChunk",
    "EncodedTextChunk",
    "ForwardBackwardOutput",
    "LoraConfig",
    "ModelID",
    "ModelInput",
    "ModelInputChunk",
    "OptimParams",
    "OptimStepRequest",
    "OptimStepResponse",
    "ParsedCheckpointTinkerPath",
    "PromptProvenanceSpan",
    "SampleRequest",
    "SampleResponse",
    "SampledProvenanceSpan",
    "SampledSequence",
    "SamplingParams",
    "StopReason",
    "TensorData",
    "TensorDtype",
    "TrainingRun",
)
_MODULES = ("chat", "gateway", "observe", "rl")
_REST = ("AdminClient", "ExperimentalWarning", "RestClient")
_ERRORS = (
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "BillingError",
    "ConflictError",
    "InternalServerError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "RequestFailedError",
    "TinkerError",
    "TnkError",
    "TnkValueError",
    "UnprocessableEntityError",
)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "APIFuture",
    "BackcompatSamplingClientFuture",
    "BackcompatTrainingClientFuture",
    "Ledger",
    "SamplingClient",
    "ServiceClient",
    "TrainingClient",
    "__version__",
    "install",
    "types",
    *_MODULES,
    *_TYPES,
    *_REST,
    *_ERRORS,
]


def __getattr__(name: str) -> Any:
    found: Any
    if name == "types":
        from . import _types

        found = _types.module()
    elif name in _TYPES:
        from . import _types

        found = _types.get(name)
    elif name in _ERRORS:
        from . import _errors

        found = _errors.get(name)
    elif name in _MODULES:
        import importlib

        found = importlib.import_module(f"tnk.{name}")
    elif name in _REST:
        from . import _rest

        found = getattr(_rest, name)
    elif name == "Ledger":
        from ._ledger import Ledger as found
    elif name in ("LossHandle", "PerDatumLossFn"):
        from . import _loss

        found = getattr(_loss._module(), name)
    elif name in ("Timeout", "RequestOptions"):
        from . import _vendor

        found = getattr(_vendor.load("_client"), name)
    else:
        raise AttributeError(f"module 'tnk' has no attribute {name!r}")
    globals()[name] = found
    return found
