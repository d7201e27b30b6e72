# SPDX-License-Identifier: MIT
"""The exceptions of the official client, for programs without it."""
from __future__ import annotations

from typing import Any


class Request:
    """Stands for the request that failed."""


class Response:
    """Stands for the response of the server."""

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code
        self.request = Request()


class TinkerError(Exception):
    # Set for errors of libtnk, whatever the class.
    code: int
    code_name: str
    ran: str
    text: str


class APIError(TinkerError):
    def __init__(self, message: str, request: Any, *, body: object | None) -> None:
        super().__init__(message)
        self.message = message
        self.request = request
        self.body = body


class APIStatusError(APIError):
    def __init__(self, message: str, response: Any, body: object | None) -> None:
        super().__init__(message, response.request, body=body)
        self.response = response
        self.status_code: int = response.status_code

    def __reduce__(self) -> Any:
        return self.__class__, (self.message, self.response, self.body), None


class APIResponseValidationError(APIError):
    def __init__(self, response: Any, body: object | None, message: str | None = None) -> None:
        super().__init__(message or "The response has another schema.", response.request, body=body)
        self.response = response
        self.status_code: int = response.status_code


class APIConnectionError(APIError):
    def __init__(self, request: Any, message: str = "Connection error.") -> None:
        super().__init__(message, request, body=None)

    def __reduce__(self) -> Any:
        return self.__class__, (self.request, self.message), None


class APITimeoutError(APIConnectionError):
    def __init__(self, request: Any) -> None:
        super().__init__(request=request, message="Request timed out.")

    def __reduce__(self) -> Any:
        return self.__class__, (self.request,), None


class BadRequestError(APIStatusError):
    pass


class AuthenticationError(APIStatusError):
    pass


class BillingError(APIStatusError):
    pass


class PermissionDeniedError(APIStatusError):
    pass


class NotFoundError(APIStatusError):
    pass


class ConflictError(APIStatusError):
    pass


class UnprocessableEntityError(APIStatusError):
    pass


class RateLimitError(APIStatusError):
    pass


class InternalServerError(APIStatusError):
    pass


class RequestFailedError(TinkerError):
    def __init__(self, message: str, request_id: str, category: Any) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id
        self.category = category

    def __reduce__(self) -> Any:
        return self.__class__, (self.message, self.request_id, self.category), None
