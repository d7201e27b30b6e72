// SPDX-License-Identifier: MIT
//! Results, which are read in place where they are large.
use std::os::raw::c_char;
use std::slice;

use tnk_sys::*;

use crate::engine::Promise;
use crate::error::string;

/// Named numbers, in the order of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// # Safety
    /// Metrics of a promise that is held, or NULL.
    pub(crate) unsafe fn read(metrics: *const tnk_metrics_t) -> Metrics {
        let n = unsafe { tnk_metrics_count(metrics) };
        let one = |i| unsafe {
            (string(tnk_metrics_key(metrics, i)).unwrap_or_default(), tnk_metrics_value(metrics, i))
        };
        Metrics((0..n).map(one).collect())
    }

    /// The number with that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|one| one.0 == name).map(|one| one.1)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|one| (one.0.as_str(), one.1))
    }
}

/// An array of the library.
///
/// # Safety
/// Of that length and valid as long as `'a`, or NULL.
unsafe fn array<'a, T>(pointer: *const T, n: usize) -> Option<&'a [T]> {
    if pointer.is_null() {
        return None;
    }
    Some(unsafe { slice::from_raw_parts(pointer, n) })
}

/// The result of a pass. The library owns it until this is dropped. `Send` and `Sync`.
pub struct Pass {
    promise: Promise,
}

impl Pass {
    pub(crate) fn new(promise: Promise) -> Self {
        Pass { promise }
    }

    fn raw(&self) -> *const tnk_pass_t {
        unsafe { tnk_promise_pass(self.promise.raw()) }
    }

    /// The metric "loss", else "loss:mean", else "loss:sum"; None without them.
    pub fn loss(&self) -> Option<f64> {
        Some(unsafe { tnk_pass_loss(self.raw()) }).filter(|loss| !loss.is_nan())
    }

    /// The metrics of the whole pass.
    pub fn metrics(&self) -> Metrics {
        unsafe { Metrics::read(tnk_pass_metrics(self.raw())) }
    }

    /// The number of examples with outputs.
    pub fn len(&self) -> usize {
        unsafe { tnk_pass_count(self.raw()) }
    }

    /// Whether there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An output of example `index`, such as "logprobs", if the server sent it as floats.
    pub fn output(&self, index: usize, name: &str) -> Option<&[f32]> {
        let name = crate::text::c_string("", name).ok()?;
        let tensor = unsafe { tnk_pass_tensor(self.raw(), index, name.as_ptr()).as_ref() }?;
        if tensor.dtype != TNK_F32 {
            return None;
        }
        unsafe { array(tensor.data as *const f32, tensor.n_values) }.or(Some(&[]))
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("metrics", &self.metrics()).field("len", &self.len()).finish()
    }
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// A stop sequence, or the token that ends a text.
    Stop,
    /// It has `max_tokens` tokens.
    Length,
}

/// The result of a sample: its sequences. The library owns it until this is dropped. `Send` and
/// `Sync`.
pub struct Samples {
    promise: Promise,
}

impl Samples {
    pub(crate) fn new(promise: Promise) -> Self {
        Samples { promise }
    }

    fn raw(&self) -> *const tnk_samples_t {
        unsafe { tnk_promise_samples(self.promise.raw()) }
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        unsafe { tnk_samples_count(self.raw()) }
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sequence `index`.
    pub fn get(&self, index: usize) -> Option<Sequence<'_>> {
        if index < self.len() {
            Some(Sequence { samples: self, index })
        } else {
            None
        }
    }

    /// The first sequence. A sample has at least one.
    ///
    /// # Panics
    /// If a server sent none.
    pub fn first(&self) -> Sequence<'_> {
        self.get(0).expect("the server sent no sequence")
    }

    /// All sequences.
    pub fn iter(&self) -> impl Iterator<Item = Sequence<'_>> {
        (0..self.len()).map(move |index| Sequence { samples: self, index })
    }

    /// The logprob of each token of the prompt, NaN where there is none. None if it was not
    /// requested.
    pub fn prompt_logprobs(&self) -> Option<&[f32]> {
        let mut n = 0;
        unsafe { array(tnk_samples_prompt_logprobs(self.raw(), &mut n), n) }
    }
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|one| one.tokens())).finish()
    }
}

/// A sequence of a [`Samples`].
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    samples: &'a Samples,
    index: usize,
}

impl<'a> Sequence<'a> {
    /// Its token ids.
    pub fn tokens(&self) -> &'a [i32] {
        let mut n = 0;
        unsafe { array(tnk_samples_tokens(self.samples.raw(), self.index, &mut n), n) }
            .unwrap_or(&[])
    }

    /// The logprob of each token, if the server sent them.
    pub fn logprobs(&self) -> Option<&'a [f32]> {
        let mut n = 0;
        unsafe { array(tnk_samples_logprobs(self.samples.raw(), self.index, &mut n), n) }
    }

    /// Why it ended.
    pub fn stop_reason(&self) -> StopReason {
        match unsafe { tnk_samples_stop_reason(self.samples.raw(), self.index) } {
            TNK_STOP_LENGTH => StopReason::Length,
            _ => StopReason::Stop,
        }
    }

    /// The service's id of it.
    pub fn id(&self) -> Option<String> {
        unsafe { string(tnk_samples_sequence_id(self.samples.raw(), self.index)) }
    }
}

/// The result of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Where it is, "tinker://...". Empty if a model has never been saved.
    pub path: String,
    /// Optimizer steps before it.
    pub n_steps: u64,
    /// Passes with gradients before it.
    pub n_passes: u64,
}

impl Saved {
    pub(crate) fn read(promise: &Promise) -> Saved {
        let saved = unsafe { tnk_promise_saved(promise.raw()).as_ref() };
        let path = |path: *const c_char| unsafe { string(path) }.unwrap_or_default();
        match saved {
            Some(saved) => {
                Saved { path: path(saved.path), n_steps: saved.n_steps, n_passes: saved.n_passes }
            }
            None => Saved {
                path: path(unsafe { tnk_promise_path(promise.raw()) }),
                n_steps: 0,
                n_passes: 0,
            },
        }
    }
}

/// A model of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Its name.
    pub name: Option<String>,
    /// The longest context in tokens, if known.
    pub max_context_length: Option<u64>,
}

pub(crate) fn read_models(promise: &Promise) -> Vec<Model> {
    let list = unsafe { tnk_promise_capabilities(promise.raw()) };
    let n = unsafe { tnk_capabilities_count(list) };
    let one = |i| {
        let model = unsafe { tnk_capabilities_model(list, i).as_ref() }?;
        Some(Model {
            name: unsafe { string(model.name) },
            max_context_length: u64::try_from(model.max_context_length).ok().filter(|n| *n != 0),
        })
    };
    (0..n).filter_map(one).collect()
}

/// A checkpoint on the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// "tinker://...".
    pub path: String,
    /// Its id within its run.
    pub id: String,
}

pub(crate) fn read_checkpoints(promise: &Promise) -> Vec<Checkpoint> {
    let page = unsafe { tnk_promise_page(promise.raw()) };
    let n = unsafe { tnk_page_count(page) };
    let one = |i| {
        let found = unsafe { tnk_page_checkpoint(page, i).as_ref() }?;
        Some(Checkpoint {
            path: unsafe { string(found.path) }?,
            id: unsafe { string(found.id) }.unwrap_or_default(),
        })
    };
    (0..n).filter_map(one).collect()
}
