"""Exceptions of kvkeep: one class per status code of the library."""

from __future__ import annotations

from typing import Dict, Optional, Type

__all__ = [
    "Closed",
    "DataLoss",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "ResourceExhausted",
    "Unavailable",
    "Unimplemented",
]


class Error(Exception):
    """Base of all errors of kvkeep.

    code: "invalid_argument", "unavailable", ...: what a program can branch on.
    message: what a person can read.
    reason: the reason that was counted in stats(), or None.
    sys_errno: the errno of a failed system call, or 0.
    """

    code: str = "internal"

    def __init__(self, message: str = "", *, reason: Optional[str] = None, errno: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.sys_errno = errno

    def __str__(self) -> str:
        return self.message


class NotFound(Error, LookupError):
    code = "not_found"


class InvalidArgument(Error, ValueError):
    """An argument is malformed or out of range; the message names it and what is accepted."""

    code = "invalid_argument"


class FailedPrecondition(Error):
    """In use by another process, not a usable directory, or incompatible with what is stored."""

    code = "failed_precondition"


class Closed(FailedPrecondition):
    """The cache is closed."""


class ResourceExhausted(Error):
    """Too large, or no room or memory could be found."""

    code = "resource_exhausted"


class Unavailable(Error, OSError):
    """The system failed an operation that may work later; `errno` says how, where known."""

    code = "unavailable"

    def __init__(self, message: str = "", *, reason: Optional[str] = None, errno: int = 0) -> None:
        super().__init__(message, reason=reason, errno=errno)
        self.errno = errno or None


class DataLoss(Error):
    """Stored bytes contradict their digest or structure."""

    code = "data_loss"


class Unimplemented(Error, NotImplementedError):
    """A dtype or a layer state that cannot be stored."""

    code = "unimplemented"


class DeadlineExceeded(Error, TimeoutError):
    """The time allowed ran out; the message says what is left."""

    code = "deadline_exceeded"


class Internal(Error, RuntimeError):
    """A fault of kvkeep."""

    code = "internal"


_BY_CODE: Dict[str, Type[Error]] = {
    cls.code: cls
    for cls in (
        NotFound,
        InvalidArgument,
        FailedPrecondition,
        ResourceExhausted,
        Unavailable,
        DataLoss,
        Unimplemented,
        DeadlineExceeded,
        Internal,
    )
}


def from_status(code: str, message: str, reason: str, errno: int) -> Error:
    """The exception of a status of the library. Called by the extension module."""
    cls = Closed if reason == "closed" else _BY_CODE[code]
    return cls(message, reason=reason or None, errno=errno)
