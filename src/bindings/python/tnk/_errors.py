# SPDX-License-Identifier: MIT
"""Exceptions: those of the official client if it is installed, else the same names."""
from __future__ import annotations

import functools
from typing import Any

from . import _native, _vendor

NAMES = (
    "TinkerError",
    "APIError",
    "APIStatusError",
    "APITimeoutError",
    "APIConnectionError",
    "APIResponseValidationError",
    "RequestFailedError",
    "BadRequestError",
    "AuthenticationError",
    "BillingError",
    "PermissionDeniedError",
    "NotFoundError",
    "ConflictError",
    "UnprocessableEntityError",
    "RateLimitError",
    "InternalServerError",
)
BY_STATUS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "BillingError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
}
# Codes without an HTTP response.
CONNECTION = {"TNK_EDNS", "TNK_ECONN", "TNK_EPROXY", "TNK_ETLS", "TNK_ECERT"}
CATEGORIES = ("Unknown", "Server", "User")
RAN = ("unknown", "no", "yes", "partly")


@functools.cache
def module() -> Any:
    """The module that has the classes."""
    return _vendor.load("_exceptions") or __import__("tnk._compat_errors", fromlist=["tnk"])


@functools.cache
def get(name: str) -> Any:
    if name == "TnkError":
        return _own("TnkError", (get("TinkerError"),))
    if name == "TnkValueError":
        return _own("TnkValueError", (get("TnkError"), ValueError))
    return getattr(module(), name)


def _own(name: str, bases: tuple[type, ...]) -> type:
    return type(name, bases, {"__module__": "tnk", "__doc__": "A failure that has no HTTP response."})


def _response(status: int, message: str) -> Any:
    """(request, response) as the classes want them."""
    vendor = _vendor.load("_exceptions")
    if vendor is None:
        from ._compat_errors import Response

        response = Response(status)
        return response.request, response
    import httpx

    request = httpx.Request("POST", "http://tnk")
    return request, httpx.Response(status, request=request, text=message)


def _made(name: str, text: str, status: int, request_id: str | None, category: int, message: str | None) -> Any:
    if name == "TNK_ECANCELED":
        from concurrent.futures import CancelledError

        return CancelledError()
    if name == "TNK_EFAILED":
        from . import _types

        return get("RequestFailedError")(
            message or text, request_id or "", _types.get("RequestErrorCategory")(CATEGORIES[category].lower())
        )
    if status:
        class_name = BY_STATUS.get(status) or ("InternalServerError" if status >= 500 else "APIStatusError")
        _, response = _response(status, message or text)
        return get(class_name)(text, response=response, body=message)
    if name == "TNK_ETIMEDOUT":
        return get("APITimeoutError")(request=_request())
    if name in CONNECTION:
        return get("APIConnectionError")(request=_request(), message=text)
    if name == "TNK_EINVAL":
        return get("TnkValueError")(text)
    return get("TnkError")(text)


def _request() -> Any:
    return _response(599, "")[0]


def from_native(value: tuple[Any, ...]) -> BaseException:
    """An exception for (code, text[, status, request id, category, ran, message]). It
    also has the attributes `code`, `code_name`, `ran`, `request_id` and `text`."""
    code, text, *more = value
    status, request_id, category, ran, message = more or (0, None, 0, 0, None)
    name = _native.error_name(code)
    error: Any = _made(name, text or "", status, request_id, category, message)
    error.code, error.code_name, error.text = code, name, text
    error.ran = RAN[ran]
    if not hasattr(error, "request_id"):
        error.request_id = request_id
    found: BaseException = error
    return found
