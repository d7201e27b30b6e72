// SPDX-License-Identifier: MIT
//! Strings and numbers on their way to C.
use std::ffi::CString;
use std::os::raw::{c_char, c_void};
use std::ptr::null;

use tnk_sys::*;

use crate::error::{Code, Error, Result};

/// A string for C; the error names it.
pub(crate) fn c_string(what: &str, text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(Code::EINVAL, format!("{} has a NUL character", what)))
}

pub(crate) fn optional(what: &str, text: &Option<String>) -> Result<Option<CString>> {
    text.as_deref().map(|text| c_string(what, text)).transpose()
}

pub(crate) fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr())
}

/// Names and values for C, which point into the first list.
pub(crate) struct Pairs {
    _texts: Vec<(CString, CString)>,
    pairs: Vec<tnk_pair_t>,
}
// It points to its own strings only.
unsafe impl Send for Pairs {}

impl Pairs {
    pub fn new(what: &str, list: &[(String, String)]) -> Result<Pairs> {
        let texts = list
            .iter()
            .map(|(name, value)| Ok((c_string(what, name)?, c_string(what, value)?)))
            .collect::<Result<Vec<_>>>()?;
        let pairs = texts
            .iter()
            .map(|(name, value)| tnk_pair_t { name: name.as_ptr(), value: value.as_ptr() })
            .collect();
        Ok(Pairs { _texts: texts, pairs })
    }

    pub fn as_ptr(&self) -> *const tnk_pair_t {
        self.pairs.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }
}

/// A struct of C with its defaults, as its INIT macro makes it.
///
/// # Safety
/// `name` is the name of the type, with a NUL.
pub(crate) unsafe fn init<T: Copy>(name: &'static str) -> T {
    debug_assert!(name.ends_with('\0'));
    let mut value: T = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of::<T>();
    let err = unsafe { tnk_init(name.as_ptr().cast(), &mut value as *mut T as *mut c_void, size) };
    assert_eq!(err, 0, "libtnk does not know the struct {}", name);
    value
}

pub(crate) fn at<T>(pointer: *const T) -> tnk_value_t {
    tnk_value_t { pointer: pointer as *mut c_void }
}

pub(crate) fn number(integer: usize) -> tnk_value_t {
    tnk_value_t { integer: integer as i64 }
}

pub(crate) fn choice(value: Option<bool>) -> tnk_choice_t {
    match value {
        None => TNK_DEFAULT,
        Some(true) => TNK_YES,
        Some(false) => TNK_NO,
    }
}

/// Methods that set a member and return the options.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(=> $wrap:expr)?;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(mut self, value: $type) -> Self {
            self.$name = setters!(@ value $($wrap)?);
            self
        })*
    };
    (@ $value:ident) => { Some($value.into()) };
    (@ $value:ident $wrap:expr) => { $wrap($value) };
}
pub(crate) use setters;
