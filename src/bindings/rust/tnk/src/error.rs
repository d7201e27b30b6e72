// SPDX-License-Identifier: MIT
//! Errors of operations and calls.
use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_int};
use std::time::Duration;

use tnk_sys::*;

use crate::engine::Promise;

#[rustfmt::skip]
#[path = "code.rs"]
mod code;

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of error it is: a code of libtnk, such as [`Code::ERATE`]. `examples/guides` of
/// libtnk describes each one in errors.md.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub(crate) c_int);

impl Code {
    /// The name in C, such as "TNK_ERATE".
    pub fn name(self) -> &'static str {
        static_str(unsafe { tnk_err_name(self.0) })
    }

    /// The general meaning, such as "rate limit of the service".
    pub fn meaning(self) -> &'static str {
        static_str(unsafe { tnk_strerror(self.0) })
    }

    /// Whether the same call may succeed later. The library has already repeated it where that
    /// is safe.
    pub fn is_retryable(self) -> bool {
        unsafe { tnk_err_is_retryable(self.0) != 0 }
    }

    /// The number in C.
    pub fn value(self) -> i32 {
        self.0
    }

    pub(crate) fn check(err: c_int) -> Result<()> {
        if err == 0 {
            return Ok(());
        }
        Err(Error::from_code(Code(err)))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The side that caused a failure, as the service reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// The service did not say.
    Unknown,
    /// The service.
    Server,
    /// The request.
    User,
}

/// Whether the service ran a failed operation. Repeating an optimizer step that was run applies
/// it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ran {
    /// It may have been run.
    Unknown,
    /// It was not run, and will not be.
    No,
    /// It was run, or will be. Only its result is lost.
    Yes,
    /// Some requests of a pass were run.
    Partly,
}

/// Why an operation or a call failed. `Send` and `Sync`.
#[derive(Clone)]
pub struct Error(Box<Details>);

#[derive(Clone)]
struct Details {
    code: Code,
    category: Category,
    ran: Ran,
    cause: i32,
    http_status: Option<u16>,
    attempts: u32,
    retry_after: Option<Duration>,
    request_id: Option<String>,
    server_message: Option<String>,
    text: String,
}

impl Error {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Error(Box::new(Details {
            code,
            category: Category::Unknown,
            ran: Ran::No,
            cause: 0,
            http_status: None,
            attempts: 0,
            retry_after: None,
            request_id: None,
            server_message: None,
            text: text.into(),
        }))
    }

    pub(crate) fn from_code(code: Code) -> Self {
        Error::new(code, code.meaning())
    }

    pub(crate) fn of_promise(promise: &Promise) -> Self {
        let found = match unsafe { tnk_promise_error(promise.raw()).as_ref() } {
            Some(found) => found,
            None => return Error::from_code(Code::EINTERNAL),
        };
        Error(Box::new(Details {
            code: Code(found.code),
            category: match found.category {
                TNK_CATEGORY_SERVER => Category::Server,
                TNK_CATEGORY_USER => Category::User,
                _ => Category::Unknown,
            },
            ran: match found.ran {
                TNK_RAN_NO => Ran::No,
                TNK_RAN_YES => Ran::Yes,
                TNK_RAN_PARTLY => Ran::Partly,
                _ => Ran::Unknown,
            },
            cause: found.cause,
            http_status: u16::try_from(found.http_status).ok().filter(|status| *status != 0),
            attempts: found.n_attempts,
            retry_after: Some(found.retry_after_ms)
                .filter(|ms| *ms != 0)
                .map(Duration::from_millis),
            request_id: unsafe { string(found.request_id) },
            server_message: unsafe { string(found.message) },
            text: unsafe { string(found.text) }.unwrap_or_default(),
        }))
    }

    pub(crate) fn with_text(mut self, text: String) -> Self {
        self.0.text = text;
        self
    }

    /// What kind of error it is.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// One complete sentence, without secrets. [`Display`](fmt::Display) prints it too.
    pub fn message(&self) -> &str {
        &self.0.text
    }

    /// The side that caused the failure, if the service ran the operation.
    pub fn category(&self) -> Category {
        self.0.category
    }

    /// Whether the service ran the operation.
    pub fn ran(&self) -> Ran {
        self.0.ran
    }

    /// Code of the system or of TLS, or 0.
    pub fn cause_code(&self) -> i32 {
        self.0.cause
    }

    /// Status of the HTTP response, if there was one.
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// How often the request was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Delay that the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The service's id of the operation.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The message of the service.
    pub fn server_message(&self) -> Option<&str> {
        self.0.server_message.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.text)
    }
}

impl std::error::Error for Error {}

fn static_str(text: *const c_char) -> &'static str {
    // Of tables of the library, which are ASCII.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// A copy of a string of the library.
///
/// # Safety
/// A valid string, or NULL.
pub(crate) unsafe fn string(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
