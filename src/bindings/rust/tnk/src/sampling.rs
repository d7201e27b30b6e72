// SPDX-License-Identifier: MIT
//! Sampling clients.
use std::ffi::CString;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use tnk_sys::*;

use crate::data::{ModelInput, PromptArgs};
use crate::engine::{Loop, Promise};
use crate::error::{string, Code, Error, Result};
use crate::operation::{Keep, Operation, Starter};
use crate::result::Samples;
use crate::service::ServiceInner;
use crate::stream::{on_token, Channel, StreamKeep, TokenStream};
use crate::text::{at, c_string, choice, init, setters};
use crate::training::Training;

pub(crate) struct SamplingInner {
    promise: Option<Promise>,
    service: Arc<ServiceInner>,
}

impl SamplingInner {
    fn handle(&self, _: &Loop) -> Option<*mut tnk_sampling_t> {
        let promise = self.promise.as_ref()?;
        Some(unsafe { tnk_promise_sampling(promise.raw()) }).filter(|handle| !handle.is_null())
    }
}

impl Drop for SamplingInner {
    fn drop(&mut self) {
        if let Some(promise) = self.promise.take() {
            self.service.lease.engine.must_post(Box::new(move |_: &Loop| unsafe {
                tnk_sampling_close(tnk_promise_sampling(promise.raw()), None, null_mut());
            }));
        }
    }
}

/// Where a sequence ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At one of these strings.
    Texts(Vec<String>),
    /// At one of these tokens.
    Tokens(Vec<i32>),
    /// After `max_tokens` tokens only.
    Never,
}

/// Parameters of a sample. What is not set has the default of the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingParams {
    max_tokens: Option<i32>,
    top_k: Option<i32>,
    seed: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    stop: Option<Stop>,
    n_samples: u32,
    prompt_logprobs: Option<bool>,
    silence_ms: u64,
}

impl SamplingParams {
    /// All parameters have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// At least 1.
        max_tokens: i32;
        /// -1 for all.
        top_k: i32;
        /// A seed repeats a sample.
        seed: i64;
        /// Default: 1.
        temperature: f64;
        /// Default: 1.
        top_p: f64;
        /// Where sequences end. Default: at the model's end token.
        stop: Stop;
        /// The number of sequences; 0 means 1.
        n_samples: u32 => std::convert::identity;
        /// Whether the logprobs of the prompt are computed too.
        prompt_logprobs: bool;
        /// Only for streams: the maximum time without a byte from the server, in milliseconds,
        /// after which the stream fails with [`Code::ETIMEDOUT`]. 0 means ten minutes.
        silence_ms: u64 => std::convert::identity;
    }

    /// The parameters in C. `stop` must outlive them.
    fn to_c(&self, stop: &StopArgs) -> tnk_sampling_params_t {
        let mut to: tnk_sampling_params_t = unsafe { init("tnk_sampling_params_t\0") };
        to.max_tokens = self.max_tokens.unwrap_or(to.max_tokens);
        to.top_k = self.top_k.unwrap_or(to.top_k);
        to.seed = self.seed.unwrap_or(to.seed);
        to.temperature = self.temperature.unwrap_or(to.temperature);
        to.top_p = self.top_p.unwrap_or(to.top_p);
        stop.set(&mut to);
        to
    }

    /// Parameters that only a sample has, or only a stream.
    fn check(&self, is_stream: bool) -> Result<()> {
        let words = if is_stream && self.n_samples > 1 {
            format!("a stream has one sequence, n_samples is {}", self.n_samples)
        } else if is_stream && self.prompt_logprobs == Some(true) {
            "a stream has no prompt_logprobs".into()
        } else if !is_stream && self.silence_ms != 0 {
            "silence_ms is only for streams".into()
        } else {
            return Ok(());
        };
        Err(Error::new(Code::EINVAL, words))
    }
}

/// The stop sequences in C.
struct StopArgs {
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
    tokens: Vec<i32>,
    is_set: bool,
}
// It points to its own strings only.
unsafe impl Send for StopArgs {}

impl StopArgs {
    fn new(stop: Option<Stop>) -> Result<StopArgs> {
        let mut made = StopArgs {
            _texts: Vec::new(),
            pointers: Vec::new(),
            tokens: Vec::new(),
            is_set: stop.is_some(),
        };
        match stop {
            Some(Stop::Texts(texts)) => {
                made._texts = texts
                    .iter()
                    .map(|text| c_string("a stop string", text))
                    .collect::<Result<_>>()?;
                made.pointers = made._texts.iter().map(|text| text.as_ptr()).collect();
            }
            Some(Stop::Tokens(tokens)) => made.tokens = tokens,
            Some(Stop::Never) | None => (),
        }
        Ok(made)
    }

    fn set(&self, to: &mut tnk_sampling_params_t) {
        if !self.pointers.is_empty() {
            to.stop_texts = self.pointers.as_ptr();
            to.n_stop_texts = self.pointers.len();
        } else if self.is_set {
            // Without elements it is not NULL, which means that nothing stops.
            to.stop_tokens = self.tokens.as_ptr();
            to.n_stop_tokens = self.tokens.len();
        }
    }
}

fn sample_args(
    prompt: ModelInput,
    params: &SamplingParams,
    is_stream: bool,
) -> Result<(PromptArgs, StopArgs)> {
    params.check(is_stream)?;
    Ok((PromptArgs::new(prompt)?, StopArgs::new(params.stop.clone())?))
}

/// Weights that can be sampled from.
///
/// A clone is the same client, which closes when its last clone and its last operation have
/// been dropped. Samples run at the same time, however many there are. Any thread may use it:
/// it is `Send` and `Sync`.
#[derive(Clone)]
pub struct Sampling {
    inner: Arc<SamplingInner>,
}

impl Sampling {
    fn of(promise: Promise, service: Arc<ServiceInner>) -> Sampling {
        Sampling { inner: Arc::new(SamplingInner { promise: Some(promise), service }) }
    }

    pub(crate) fn read(promise: Promise, keep: Keep) -> Result<Sampling> {
        let service =
            keep.downcast::<ServiceInner>().map_err(|_| Error::from_code(Code::EINTERNAL))?;
        Ok(Sampling::of(promise, service))
    }

    pub(crate) fn read_of_training(promise: Promise, keep: Keep) -> Result<Sampling> {
        Ok(Sampling::of(promise, Training::service_of(keep)?))
    }

    fn start<T: Send + 'static>(
        &self,
        read: fn(Promise, Keep) -> Result<T>,
        begin: impl FnOnce(&Loop, &Starter<T>, *mut tnk_sampling_t) + Send + 'static,
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

    /// Sample from the model.
    pub fn sample(
        &self,
        prompt: impl Into<ModelInput>,
        params: SamplingParams,
    ) -> Operation<Samples> {
        let (prompt, stop) = match sample_args(prompt.into(), &params, false) {
            Ok(args) => args,
            Err(error) => return Operation::failed(&self.inner.service.lease.engine, error),
        };
        self.start(
            |promise, _| Ok(Samples::new(promise)),
            move |on, starter, sampling| {
                let input = prompt.view();
                let numbers = params.to_c(&stop);
                let mut options: tnk_sample_options_t = unsafe { init("tnk_sample_options_t\0") };
                options.n_samples = params.n_samples;
                options.prompt_logprobs = choice(params.prompt_logprobs);
                let values = [at(sampling), at(&input), at(&numbers), at(&options)];
                unsafe { starter.call(on, "tnk_sampling_sample\0", &values) };
            },
        )
    }

    /// Sample one sequence and read its tokens while they are generated. The sample begins with
    /// this call.
    ///
    /// Experimental: `tnk local` offers streams, and no public service is known to do so. A
    /// server without them fails with [`Code::EUNSUPPORTED`]; use
    /// [`sample`](Sampling::sample) instead. A stream that breaks after its first token is not
    /// repeated. The error says how many tokens came.
    pub fn stream(&self, prompt: impl Into<ModelInput>, params: SamplingParams) -> TokenStream {
        let engine = &self.inner.service.lease.engine;
        let channel = Channel::new(engine);
        let operation = match sample_args(prompt.into(), &params, true) {
            Ok((prompt, stop)) => self.start_stream(&channel, prompt, stop, params),
            Err(error) => Operation::failed(engine, error),
        };
        TokenStream::new(engine, channel, operation)
    }

    fn start_stream(
        &self,
        channel: &Arc<Channel>,
        prompt: PromptArgs,
        stop: StopArgs,
        params: SamplingParams,
    ) -> Operation<Samples> {
        let engine = &self.inner.service.lease.engine;
        let keep = StreamKeep { _channel: channel.clone(), _sampling: self.inner.clone() };
        let (inner, channel) = (self.inner.clone(), channel.clone());
        let read = |promise, _| Ok(Samples::new(promise));
        Operation::start(engine, Arc::new(keep), read, move |on, starter| {
            let sampling = match inner.handle(on) {
                Some(handle) => handle,
                None => return starter.fail(Code::ECLOSED),
            };
            let input = prompt.view();
            let numbers = params.to_c(&stop);
            let mut options: tnk_sample_stream_options_t =
                unsafe { init("tnk_sample_stream_options_t\0") };
            options.on_token = Some(on_token);
            // The operation keeps the channel until the promise has settled.
            options.user = Arc::as_ptr(&channel) as *mut c_void;
            options.silence_ms = params.silence_ms;
            let values = [at(sampling), at(&input), at(&numbers), at(&options)];
            unsafe { starter.call(on, "tnk_sampling_sample_stream\0", &values) };
        })
    }

    /// Compute the logprob of each token of the prompt, given the tokens before it. It is NaN
    /// where there is none, as for the first token.
    pub fn compute_logprobs(&self, prompt: impl Into<ModelInput>) -> Operation<Vec<f32>> {
        let prompt = match PromptArgs::new(prompt.into()) {
            Ok(prompt) => prompt,
            Err(error) => return Operation::failed(&self.inner.service.lease.engine, error),
        };
        let read = |promise: Promise, _| {
            let mut n = 0;
            let values = unsafe { tnk_promise_logprobs(promise.raw(), &mut n) };
            if values.is_null() {
                return Ok(Vec::new());
            }
            Ok(unsafe { std::slice::from_raw_parts(values, n) }.to_vec())
        };
        self.start(read, move |on, starter, sampling| {
            let input = prompt.view();
            let none = at(null::<tnk_logprobs_options_t>());
            unsafe {
                starter.call(
                    on,
                    "tnk_sampling_compute_logprobs\0",
                    &[at(sampling), at(&input), none],
                )
            };
        })
    }

    /// The sampler as a string without secrets, with which another process can sample from it:
    /// see [`SamplingOptions::exported`](crate::SamplingOptions::exported). This call waits for
    /// the thread of the library, but for no server.
    pub fn export(&self) -> Result<String> {
        let inner = self.inner.clone();
        self.inner.service.lease.engine.call(move |on| {
            let sampling = inner.handle(on).ok_or_else(|| Error::from_code(Code::ECLOSED))?;
            unsafe { string(tnk_sampling_export(sampling)) }
                .ok_or_else(|| Error::from_code(Code::ENOMEM))
        })?
    }
}

impl std::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampling")
    }
}
