// SPDX-License-Identifier: MIT
//! Training clients.
use std::ffi::CString;
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use tnk_sys::*;

use crate::custom::{on_loss, Custom, CustomLoss, LossResult};
use crate::data::{Datum, PassArgs};
use crate::engine::{Engine, Loop, Promise};
use crate::error::{string, Code, Error, Result};
use crate::loss::Loss;
use crate::operation::{Keep, Operation, Starter};
use crate::result::{Metrics, Pass, Saved};
use crate::sampling::Sampling;
use crate::service::{Service, ServiceInner};
use crate::text::{at, c_string, choice, init, number, setters};

pub(crate) struct TrainingInner {
    /// The handle is that of the promise, as long as the client is open.
    promise: Option<Promise>,
    service: Arc<ServiceInner>,
}

impl TrainingInner {
    pub fn engine(&self) -> &Arc<Engine> {
        &self.service.lease.engine
    }

    pub fn handle(&self, _: &Loop) -> Option<*mut tnk_training_t> {
        let promise = self.promise.as_ref()?;
        Some(unsafe { tnk_promise_training(promise.raw()) }).filter(|handle| !handle.is_null())
    }
}

impl Drop for TrainingInner {
    fn drop(&mut self) {
        if let Some(promise) = self.promise.take() {
            self.service.lease.engine.must_post(Box::new(move |_: &Loop| unsafe {
                tnk_training_close(tnk_promise_training(promise.raw()), None, null_mut());
            }));
        }
    }
}

/// Parameters of an optimizer step. What is not set has the default of the official client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdamParams {
    learning_rate: Option<f64>,
    beta1: Option<f64>,
    beta2: Option<f64>,
    eps: Option<f64>,
    weight_decay: Option<f64>,
    grad_clip_norm: Option<f64>,
}

impl AdamParams {
    /// All parameters have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Default: 0.0001.
        learning_rate: f64;
        /// Default: 0.9.
        beta1: f64;
        /// Default: 0.95.
        beta2: f64;
        /// Default: 1e-12.
        eps: f64;
        /// Default: 0.
        weight_decay: f64;
        /// Default: 0, no clipping.
        grad_clip_norm: f64;
    }
}

/// Options of a save.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    ttl_seconds: u64,
    overwrite: Option<bool>,
}

impl SaveOptions {
    /// All options have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Lifetime of the checkpoint; 0 keeps it until it is deleted.
        ttl_seconds: u64 => std::convert::identity;
        /// Whether the name may exist. Only for states.
        overwrite: bool;
    }
}

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrainingInfo {
    /// The id of the model, which is also that of its run.
    pub model_id: Option<String>,
    /// The base model.
    pub base_model: Option<String>,
    /// The name of the tokenizer.
    pub tokenizer_id: Option<String>,
    /// The rank, if known.
    pub lora_rank: Option<u32>,
}

/// A model that is trained.
///
/// A clone is the same client. Its operations reach the service in the order of the calls. The
/// client closes when its last clone and its last operation have been dropped; the model stays
/// on the service. Any thread may use it: it is `Send` and `Sync`.
#[derive(Clone)]
pub struct Training {
    pub(crate) inner: Arc<TrainingInner>,
}

/// Call a pass function. The library keeps a reference to the data until it has read them.
///
/// # Safety
/// `before` are the arguments of the function before its options.
unsafe fn call_with_data(
    on: &Loop,
    starter: &Starter<Pass>,
    function: &'static str,
    before: &[tnk_value_t],
    args: &Arc<PassArgs>,
    mut options: tnk_pass_options_t,
) {
    extern "C" fn release(user: *mut c_void) {
        drop(unsafe { Arc::from_raw(user as *const PassArgs) });
    }
    let lent = Arc::into_raw(args.clone());
    options.release = Some(release);
    options.release_user = lent as *mut c_void;
    let mut values = before.to_vec();
    values.push(at(&options));
    if !unsafe { starter.call(on, function, &values) } {
        // The function was not called, so it does not release them.
        release(lent as *mut c_void);
    }
}

type Save = (&'static str, CString, SaveOptions);

impl Training {
    pub(crate) fn read(promise: Promise, keep: Keep) -> Result<Training> {
        let service =
            keep.downcast::<ServiceInner>().map_err(|_| Error::from_code(Code::EINTERNAL))?;
        Ok(Training { inner: Arc::new(TrainingInner { promise: Some(promise), service }) })
    }

    fn start<T: Send + 'static>(
        &self,
        read: fn(Promise, Keep) -> Result<T>,
        begin: impl FnOnce(&Loop, &Starter<T>, *mut tnk_training_t) + Send + 'static,
    ) -> Operation<T> {
        let inner = self.inner.clone();
        let engine = &self.inner.service.lease.engine;
        Operation::start(engine, self.inner.clone(), read, move |on, starter| {
            match inner.handle(on) {
                Some(handle) => begin(on, starter, handle),
                None => starter.fail(Code::ECLOSED),
            }
        })
    }

    fn failed<T: Send + 'static>(&self, error: Error) -> Operation<T> {
        Operation::failed(&self.inner.service.lease.engine, error)
    }

    fn pass(&self, function: &'static str, data: Arc<[Datum]>, loss: Loss) -> Operation<Pass> {
        let args = match PassArgs::new(data, &loss) {
            Ok(args) => Arc::new(args),
            Err(error) => return self.failed(error),
        };
        self.start(
            |promise, _| Ok(Pass::new(promise)),
            move |on, starter, training| {
                let before = [at(training), at(args.datums.as_ptr()), number(args.datums.len())];
                unsafe { call_with_data(on, starter, function, &before, &args, args.options()) };
            },
        )
    }

    /// Run a forward and backward pass. The service accumulates the gradients until
    /// [`optim_step`](Training::optim_step).
    ///
    /// `data` is a `Vec<Datum>`, or an `Arc<[Datum]>` that is used several times. Its arrays are
    /// not copied. `loss` is the name of a loss, or one of the types that [`Loss`] lists.
    pub fn forward_backward(
        &self,
        data: impl Into<Arc<[Datum]>>,
        loss: impl Into<Loss>,
    ) -> Operation<Pass> {
        self.pass("tnk_training_forward_backward\0", data.into(), loss.into())
    }

    /// Run a forward pass only: losses and logprobs, no gradients.
    pub fn forward(&self, data: impl Into<Arc<[Datum]>>, loss: impl Into<Loss>) -> Operation<Pass> {
        self.pass("tnk_training_forward\0", data.into(), loss.into())
    }

    /// Run a forward pass, compute the loss and its gradient here, and run the backward pass.
    /// Each example needs `target_tokens`.
    ///
    /// The function is called once, on a thread of its own. It writes the derivatives of the loss
    /// by the logprobs and returns the loss, which is the metric "loss:sum" of the pass. If it
    /// returns an error or panics, the operation fails with [`Code::EUSER`] and the words of the
    /// error, and no backward pass is sent. Later calls of the client reach the service after the
    /// backward pass. A function that runs is not interrupted: its client and its service close
    /// after it, and the process ends after it.
    pub fn forward_backward_custom(
        &self,
        data: impl Into<Arc<[Datum]>>,
        loss: impl FnOnce(&mut CustomLoss) -> LossResult + Send + 'static,
    ) -> Operation<Pass> {
        let args = match PassArgs::new(data.into(), &Loss::new("")) {
            Ok(args) => Arc::new(args),
            Err(error) => return self.failed(error),
        };
        let custom = Custom::new(Box::new(loss), &self.inner);
        let inner = self.inner.clone();
        let read = |promise, _| Ok(Pass::new(promise));
        Operation::start(self.inner.engine(), custom.clone(), read, move |on, starter| {
            let training = match inner.handle(on) {
                Some(handle) => handle,
                None => return starter.fail(Code::ECLOSED),
            };
            // The operation keeps `custom` until the promise has settled.
            let before = [
                at(training),
                at(args.datums.as_ptr()),
                number(args.datums.len()),
                at(on_loss as *const c_void),
                at(Arc::as_ptr(&custom)),
            ];
            let function = "tnk_training_forward_backward_custom\0";
            let options = PassArgs::bare_options();
            unsafe { call_with_data(on, starter, function, &before, &args, options) };
        })
    }

    /// Apply the gradients and clear them. The result has the metrics of the step.
    pub fn optim_step(&self, params: AdamParams) -> Operation<Metrics> {
        let read =
            |promise: Promise, _| Ok(unsafe { Metrics::read(tnk_promise_metrics(promise.raw())) });
        self.start(read, move |on, starter, training| {
            let mut optim: tnk_optim_t = unsafe { init("tnk_optim_t\0") };
            for (to, from) in [
                (&mut optim.learning_rate, params.learning_rate),
                (&mut optim.beta1, params.beta1),
                (&mut optim.beta2, params.beta2),
                (&mut optim.eps, params.eps),
                (&mut optim.weight_decay, params.weight_decay),
                (&mut optim.grad_clip_norm, params.grad_clip_norm),
            ] {
                *to = from.unwrap_or(*to);
            }
            unsafe { starter.call(on, "tnk_training_optim_step\0", &[at(training), at(&optim)]) };
        })
    }

    fn save(&self, function: &'static str, name: &str, options: SaveOptions) -> Operation<Saved> {
        let (function, name, options): Save = match c_string("the name", name) {
            Ok(name) => (function, name, options),
            Err(error) => return self.failed(error),
        };
        self.start(
            |promise, _| Ok(Saved::read(&promise)),
            move |on, starter, training| {
                let mut save: tnk_save_options_t = unsafe { init("tnk_save_options_t\0") };
                save.ttl_seconds = options.ttl_seconds;
                save.overwrite = choice(options.overwrite);
                unsafe {
                    starter.call(on, function, &[at(training), at(name.as_ptr()), at(&save)])
                };
            },
        )
    }

    /// Save weights and the state of the optimizer under a name.
    pub fn save_state(&self, name: &str, options: SaveOptions) -> Operation<Saved> {
        self.save("tnk_training_save_state\0", name, options)
    }

    /// Save weights for sampling under a name.
    pub fn save_weights_for_sampler(&self, name: &str, options: SaveOptions) -> Operation<Saved> {
        self.save("tnk_training_save_weights_for_sampler\0", name, options)
    }

    /// Save the current weights without a name and sample from them.
    pub fn save_weights_and_get_sampling(&self) -> Operation<Sampling> {
        self.start(Sampling::read_of_training, |on, starter, training| {
            let kind = number(TNK_SAMPLING_SNAPSHOT as usize);
            let none = at(std::ptr::null::<c_void>());
            unsafe {
                starter.call(
                    on,
                    "tnk_training_save_weights_and_get_sampling\0",
                    &[at(training), kind, none],
                )
            };
        })
    }

    /// Load a saved state into this model, with the moments of the optimizer or without them.
    pub fn load_state(&self, path: &str, with_optimizer: bool) -> Operation<()> {
        let path = match c_string("the path", path) {
            Ok(path) => path,
            Err(error) => return self.failed(error),
        };
        self.start(
            |_, _| Ok(()),
            move |on, starter, training| {
                let mut options: tnk_load_options_t = unsafe { init("tnk_load_options_t\0") };
                options.path = path.as_ptr();
                options.with_optimizer = choice(Some(with_optimizer));
                unsafe {
                    starter.call(on, "tnk_training_load_state\0", &[at(training), at(&options)])
                };
            },
        )
    }

    /// Wait until the client accepts operations after the server has lost its model. The result
    /// says from which step to continue.
    pub fn ready(&self) -> Operation<Saved> {
        self.start(
            |promise, _| Ok(Saved::read(&promise)),
            |on, starter, training| {
                unsafe { starter.call(on, "tnk_training_ready\0", &[at(training)]) };
            },
        )
    }

    /// Continue with the current weights of the server, after
    /// [`QueueState::MemoryLost`](crate::QueueState::MemoryLost). Use it only if you know that the
    /// weights are good; otherwise restore a saved state. This call waits for the thread of the
    /// library, but for no server.
    pub fn go_on(&self) -> Result<()> {
        let inner = self.inner.clone();
        self.inner.service.lease.engine.call(move |on| {
            let training = inner.handle(on).ok_or_else(|| Error::from_code(Code::ECLOSED))?;
            Code::check(unsafe { tnk_training_go_on(training) })
        })?
    }

    /// What is known of the model. This call waits for the thread of the library, but for no
    /// server.
    pub fn info(&self) -> Result<TrainingInfo> {
        let inner = self.inner.clone();
        self.inner.service.lease.engine.call(move |on| {
            let training = inner.handle(on).ok_or_else(|| Error::from_code(Code::ECLOSED))?;
            let mut info: tnk_training_info_t = unsafe { init("tnk_training_info_t\0") };
            Code::check(unsafe { tnk_training_info(&mut info, training) })?;
            Ok(TrainingInfo {
                model_id: unsafe { string(info.model_id) },
                base_model: unsafe { string(info.base_model) },
                tokenizer_id: unsafe { string(info.tokenizer_id) },
                lora_rank: Some(info.lora_rank).filter(|rank| *rank != 0),
            })
        })?
    }

    /// The service of this client.
    pub fn service(&self) -> Service {
        Service { inner: self.inner.service.clone() }
    }

    pub(crate) fn service_of(keep: Keep) -> Result<Arc<ServiceInner>> {
        let inner =
            keep.downcast::<TrainingInner>().map_err(|_| Error::from_code(Code::EINTERNAL))?;
        Ok(inner.service.clone())
    }
}

impl std::fmt::Debug for Training {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Training")
    }
}
