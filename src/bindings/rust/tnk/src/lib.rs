// SPDX-License-Identifier: MIT
//! The Tinker training API, on libtnk.
//!
//! [`Service`] is the connection to a server. It creates [`Training`] and [`Sampling`] clients.
//! Their calls start an operation at once and return an [`Operation`]: a future for any
//! executor, with [`Operation::wait`] for programs without one.
//!
//! The library runs on a thread of its own. A second thread takes results and calls wakers.
//! Both begin with the first service and end with the last one. No call waits for a server,
//! except `wait` and `wait_timeout`. Calls that say so wait for the thread of the library, for
//! some microseconds.
//!
//! A child process of `fork()` has none of these threads. What its parent had fails there with
//! [`Code::EFORKED`]; it can open services of its own.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(feature = "chat")]
pub mod chat;
mod custom;
mod data;
mod engine;
mod error;
#[cfg(feature = "gateway")]
mod gateway;
mod ledger;
mod loss;
mod observe;
mod operation;
mod result;
pub mod rl;
mod sampling;
mod service;
mod stream;
mod text;
mod training;

pub use custom::{CustomLoss, LossResult};
pub use data::{Chunk, Datum, Elements, ImageFormat, ModelInput, Tensor};
pub use error::{Category, Code, Error, Ran, Result};
#[cfg(feature = "gateway")]
pub use gateway::{Gateway, GatewayKey, GatewayOptions, GatewayStats, KeyOptions};
pub use ledger::{Entry, Ledger, LedgerOptions, LedgerSave};
pub use loss::{Cispo, CrossEntropy, Dro, Gspo, ImportanceSampling, Loss, Ppo, Setting};
pub use observe::{
    LogLevel, LogLine, QueueEvent, QueueState, Recovered, RecoveryEvent, RecoveryState,
};
pub use operation::Operation;
pub use result::{Checkpoint, Metrics, Model, Pass, Samples, Saved, Sequence, StopReason};
pub use sampling::{Sampling, SamplingParams, Stop};
pub use service::{LoraOptions, SamplingOptions, Service, ServiceOptions};
pub use stream::{Next, Token, TokenStream};
pub use training::{AdamParams, SaveOptions, Training, TrainingInfo};

/// The version of the linked libtnk, as "MAJOR.MINOR.PATCH".
pub fn version() -> String {
    unsafe { error::string(tnk_sys::tnk_version()) }.unwrap_or_default()
}
