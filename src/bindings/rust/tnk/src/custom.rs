// SPDX-License-Identifier: MIT
//! Losses that the program computes.
use std::cell::Cell;
use std::ffi::CString;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;
use std::sync::{Arc, Mutex};
use std::thread;

use tnk_sys::*;

use crate::engine::{lock, Loop, Raw};
use crate::error::{Code, Error, Result};
use crate::operation::Keep;
use crate::text::c_string;
use crate::training::TrainingInner;

/// What a loss function returns: the loss, or any error. `?` makes one of each error type, and
/// `"text".into()` one of a string.
pub type LossResult = std::result::Result<f64, Box<dyn std::error::Error + Send + Sync>>;

type Function = Box<dyn FnOnce(&mut CustomLoss) -> LossResult + Send>;

/// What a loss function of [`forward_backward_custom`](crate::Training::forward_backward_custom)
/// reads and writes: for each example the logprobs of its targets, and the derivatives of the
/// loss by them.
pub struct CustomLoss {
    io: Raw<tnk_custom_loss_t>,
    metrics: Vec<(String, f64)>,
}

impl CustomLoss {
    fn io(&self) -> &tnk_custom_loss_t {
        // It exists until the loss is finished, which is after the end of the function.
        unsafe { &*self.io.0 }
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.io().n_data
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The logprobs of an example.
    ///
    /// # Panics
    /// If there is no such example.
    pub fn logprobs(&self, index: usize) -> &[f32] {
        assert!(index < self.len(), "there is no example {}", index);
        let tensor = unsafe { &*self.io().logprobs.add(index) };
        if tensor.n_values == 0 {
            return &[];
        }
        unsafe { slice::from_raw_parts(tensor.data as *const f32, tensor.n_values) }
    }

    /// The logprobs of an example and its gradient, which is 0 at first.
    ///
    /// # Panics
    /// If there is no such example.
    pub fn example(&mut self, index: usize) -> (&[f32], &mut [f32]) {
        let n = self.logprobs(index).len();
        let to = unsafe { *self.io().gradients.add(index) };
        let gradient = if n == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(to, n) } };
        (self.logprobs(index), gradient)
    }

    /// The gradient of an example.
    ///
    /// # Panics
    /// If there is no such example.
    pub fn gradient(&mut self, index: usize) -> &mut [f32] {
        self.example(index).1
    }

    /// Add a metric to the result of the pass, at most 1,024.
    pub fn metric(&mut self, name: &str, value: f64) {
        self.metrics.push((name.into(), value));
    }
}

impl std::fmt::Debug for CustomLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CustomLoss").field("len", &self.len()).finish()
    }
}

/// What a pass with such a loss needs until its end.
pub(crate) struct Custom {
    function: Mutex<Option<Function>>,
    /// Why the function failed.
    failure: Mutex<Option<String>>,
    training: Arc<TrainingInner>,
}

/// What the end of a loss gives to the library. The names outlive the rows.
struct Outcome {
    io: Raw<tnk_custom_loss_t>,
    status: c_int,
    loss: f64,
    _names: Vec<CString>,
    rows: Vec<tnk_custom_metric_t>,
}
// Its rows point to its own names only.
unsafe impl Send for Outcome {}

thread_local! {
    static IS_LOSS: Cell<bool> = Cell::new(false);
}

/// Whether this thread computes a loss.
pub(crate) fn is_loss_thread() -> bool {
    IS_LOSS.with(Cell::get)
}

impl Custom {
    pub fn new(function: Function, training: &Arc<TrainingInner>) -> Arc<Custom> {
        Arc::new(Custom {
            function: Mutex::new(Some(function)),
            failure: Mutex::new(None),
            training: training.clone(),
        })
    }

    fn fail(&self, text: String) -> c_int {
        *lock(&self.failure) = Some(text);
        1
    }

    /// On a thread of its own.
    fn compute(&self, io: Raw<tnk_custom_loss_t>, function: Function) -> Outcome {
        let mut view = CustomLoss { io, metrics: Vec::new() };
        let ran = catch_unwind(AssertUnwindSafe(|| function(&mut view)));
        let mut outcome =
            Outcome { io, status: 0, loss: 0.0, _names: Vec::new(), rows: Vec::new() };
        let made = match ran {
            Ok(Ok(loss)) => {
                outcome.loss = loss;
                outcome.set_metrics(&view.metrics)
            }
            Ok(Err(error)) => Err(Error::new(Code::EUSER, error.to_string())),
            Err(_) => Err(Error::new(Code::EUSER, "the loss function panicked")),
        };
        if let Err(error) = made {
            outcome.status = self.fail(error.message().into());
        }
        outcome
    }

    /// On the runtime's thread, between the two passes.
    fn begin(self: Arc<Self>, io: Raw<tnk_custom_loss_t>) -> c_int {
        let engine = self.training.engine().clone();
        let function = lock(&self.function).take();
        let function = match function {
            Some(function) if engine.begin_loss() => function,
            _ => return self.fail("the runtime is stopping".into()),
        };
        let (own, on_thread) = (self.clone(), engine.clone());
        let spawned = thread::Builder::new().name("tnk loss".into()).spawn(move || {
            IS_LOSS.with(|is_loss| is_loss.set(true));
            let outcome = own.compute(io, function);
            // The last reference may close the client.
            drop(own);
            on_thread.post_or_wait(Box::new(move |on: &Loop| {
                outcome.finish();
                on.engine.end_loss();
            }));
        });
        if spawned.is_err() {
            engine.end_loss();
            return self.fail("there is no thread for the loss function".into());
        }
        unsafe { tnk_custom_loss_defer(io.0) }
    }
}

impl Outcome {
    fn set_metrics(&mut self, metrics: &[(String, f64)]) -> Result<()> {
        for (name, value) in metrics {
            let name = c_string("the name of a metric", name)?;
            self.rows.push(tnk_custom_metric_t { name: name.as_ptr(), value: *value });
            self._names.push(name);
        }
        Ok(())
    }

    fn finish(self) {
        let io = unsafe { &mut *self.io.0 };
        io.loss = self.loss;
        io.metrics = self.rows.as_ptr();
        io.n_metrics = self.rows.len();
        // It copies the metrics. If the operation has ended already, the loss is dropped.
        unsafe { tnk_custom_loss_finish(io, self.status) };
    }
}

/// A `tnk_custom_loss_cb`. A result other than 0 fails the pass.
pub(crate) extern "C" fn on_loss(io: *mut tnk_custom_loss_t, user: *mut c_void) -> c_int {
    // A panic must not reach C. The operation keeps the value until its end.
    let began = catch_unwind(AssertUnwindSafe(|| {
        let custom = unsafe {
            Arc::increment_strong_count(user as *const Custom);
            Arc::from_raw(user as *const Custom)
        };
        custom.begin(Raw(io))
    }));
    began.unwrap_or(1)
}

/// The error of a failed operation, with the words of its loss function.
pub(crate) fn explained(error: Error, keep: Option<Keep>) -> Error {
    let custom = keep.as_ref().and_then(|keep| keep.downcast_ref::<Custom>());
    match custom.and_then(|custom| lock(&custom.failure).take()) {
        Some(text) if error.code() == Code::EUSER => error.with_text(text),
        _ => error,
    }
}
