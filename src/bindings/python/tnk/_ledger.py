# SPDX-License-Identifier: MIT
"""A record of a run's saves, from which a killed program resumes."""
from __future__ import annotations

import functools
from typing import Any

from . import _clients, _future, _native
from ._future import HANDLE, APIFuture


class Ledger:
    """The ledger of a run, a directory; see tnk/ledger.h.

        ledger = tnk.Ledger.open(service, "runs/first", every_steps=10).result()
        if ledger.last() is None:
            training = service.create_lora_training_client("Qwen/Qwen3-8B").result()
        else:
            training = ledger.resume().result()
            first = ledger.resumed()["batch"]
    """

    def __init__(self, service: _clients.ServiceClient, promise: Any) -> None:
        self._service = service
        self._promise = promise
        self._address = _future.call("tnk_promise_ledger", promise)

    @classmethod
    def open(cls, service: _clients.ServiceClient, directory: str, **options: Any) -> APIFuture[Ledger]:
        """Open or create it. Options: run, every_steps, every_seconds, ttl_seconds,
        n_rolling."""
        return _future.start(
            HANDLE,
            functools.partial(cls, service),
            "tnk_ledger_open",
            service._handle,
            directory,
            ("tnk_ledger_options_t", options),
        )

    def _record(self, function: str) -> Any:
        where = _future.threads_pump().native
        return _future.native(_native.record, where, "tnk_ledger_entry_t", function, self._address)

    def last(self) -> dict[str, Any] | None:
        """The save from which the run would resume, or None."""
        found: dict[str, Any] | None = self._record("tnk_ledger_last")
        return found

    def resumed(self) -> dict[str, Any]:
        """The save from which resume() has resumed."""
        found: dict[str, Any] | None = self._record("tnk_ledger_resumed")
        if found is None:
            raise RuntimeError("nothing was resumed from this ledger")
        return found

    def due(self, training: _clients.TrainingClient) -> bool:
        """Return whether a save is due, as the options say."""
        return bool(_future.call("tnk_ledger_due", self._address, training._handle))

    def save(self, training: _clients.TrainingClient, **options: Any) -> APIFuture[dict[str, Any]]:
        """Save the state and record it. Options: name, cursor, batch, epoch, ttl_seconds,
        with_sampler, is_final, is_rolling."""

        def read(promise: Any) -> Any:
            where = _future.threads_pump().native
            return _future.native(_native.record, where, "tnk_ledger_entry_t", "tnk_promise_entry", promise)

        return _future.start(
            HANDLE, read, "tnk_ledger_save", self._address, training._handle, ("tnk_ledger_save_t", options)
        )

    def resume(self, with_optimizer: bool = True) -> Any:
        """A future of a TrainingClient with the state of the last save."""
        options = {"with_optimizer": with_optimizer}
        future = _future.start(
            HANDLE,
            functools.partial(_clients.TrainingClient, self._service),
            "tnk_ledger_resume",
            self._address,
            ("tnk_ledger_resume_t", options),
        )
        return _clients._as(_clients.BackcompatTrainingClientFuture, future)

    def close(self) -> APIFuture[None]:
        return _clients._close(self._address, 3)
