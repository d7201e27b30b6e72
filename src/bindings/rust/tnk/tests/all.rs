// SPDX-License-Identifier: MIT
//! All tests of the crate. One program compiles faster than several.
#[cfg(feature = "chat")]
mod chat;
mod client;
mod custom;
mod ends;
#[cfg(feature = "gateway")]
mod gateway;
mod losses;
mod observe;
mod rl;
mod stream;
mod support;
