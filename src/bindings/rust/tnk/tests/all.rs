// SPDX-License-Identifier: MIT
//! All tests of the crate. One program compiles faster than several.
mod client;
mod ends;
mod losses;
mod observe;
mod stream;
mod support;
