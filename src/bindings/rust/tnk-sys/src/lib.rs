// SPDX-License-Identifier: MIT
//! The declarations of libtnk, as its headers have them.
//!
//! The names are those of C. An enum of C is a number with constants, because a newer
//! library may return values that this crate does not know. Structs with a `size` are
//! initialized by [`tnk_init`]. The line "Thread:" of each function says where it may be
//! called; `tnk/bindings.h` explains the words.
//!
//! The crate `tnk` has a safe interface. The features `tokenizers`, `chat` and `gateway`
//! add the functions of these libraries.
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod generated;
pub use generated::*;
