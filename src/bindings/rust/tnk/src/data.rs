// SPDX-License-Identifier: MIT
//! Inputs of models, training data, and their form in C.
use std::ffi::CString;
use std::os::raw::c_void;
use std::ptr::null;
use std::sync::Arc;

use tnk_sys::*;

use crate::error::Result;
use crate::loss::{Loss, LossArgs};
use crate::text::c_string;

/// Encoding of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ImageFormat {
    Png,
    Jpeg,
}

/// A part of a [`ModelInput`].
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Token ids.
    Tokens(Vec<i32>),
    /// The contents of an image file.
    Image {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its encoding.
        format: ImageFormat,
        /// The number of tokens that it should have, if stated.
        expected_tokens: Option<i32>,
    },
    /// A stored image.
    ImagePointer {
        /// Where it is stored.
        location: String,
        /// Its encoding.
        format: ImageFormat,
        /// The number of tokens that it should have, if stated.
        expected_tokens: Option<i32>,
    },
}

/// What a model reads: token ids, or several chunks. Made from `Vec<i32>`, `&[i32]` and
/// `Vec<Chunk>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelInput(Vec<Chunk>);

impl ModelInput {
    /// Its chunks.
    pub fn chunks(&self) -> &[Chunk] {
        &self.0
    }
}

impl From<Vec<i32>> for ModelInput {
    fn from(tokens: Vec<i32>) -> Self {
        ModelInput(vec![Chunk::Tokens(tokens)])
    }
}
impl From<&[i32]> for ModelInput {
    fn from(tokens: &[i32]) -> Self {
        tokens.to_vec().into()
    }
}
impl From<&Vec<i32>> for ModelInput {
    fn from(tokens: &Vec<i32>) -> Self {
        tokens.clone().into()
    }
}
impl From<Vec<Chunk>> for ModelInput {
    fn from(chunks: Vec<Chunk>) -> Self {
        ModelInput(chunks)
    }
}

/// The elements of a [`Tensor`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Elements {
    I64(Vec<i64>),
    F32(Vec<f32>),
}

/// A dense tensor, made from a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    elements: Elements,
    shape: Vec<i64>,
}

impl Tensor {
    /// Give it a shape of several dimensions.
    #[must_use]
    pub fn shaped(mut self, shape: &[i64]) -> Self {
        self.shape = shape.to_vec();
        self
    }

    /// Its elements, row by row.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    fn to_c(&self) -> tnk_tensor_t {
        // All zeros is an empty vector.
        let mut tensor: tnk_tensor_t = unsafe { std::mem::zeroed() };
        let (dtype, data, n) = match &self.elements {
            Elements::I64(values) => (TNK_I64, values.as_ptr() as *const c_void, values.len()),
            Elements::F32(values) => (TNK_F32, values.as_ptr() as *const c_void, values.len()),
        };
        tensor.dtype = dtype;
        tensor.data = data;
        tensor.n_values = n;
        // The library refuses a larger number, and names the tensor.
        tensor.n_dims = self.shape.len() as u32;
        for (to, from) in tensor.shape.iter_mut().zip(&self.shape) {
            *to = *from;
        }
        tensor
    }
}

impl From<Vec<i64>> for Tensor {
    fn from(values: Vec<i64>) -> Self {
        Tensor { elements: Elements::I64(values), shape: Vec::new() }
    }
}
impl From<Vec<f32>> for Tensor {
    fn from(values: Vec<f32>) -> Self {
        Tensor { elements: Elements::F32(values), shape: Vec::new() }
    }
}

/// One training example: an input, and the tensors that the loss reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    input: ModelInput,
    loss_inputs: Vec<(String, Tensor)>,
}

/// Loss inputs of one number for each position.
macro_rules! floats {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(self, values: impl Into<Vec<f32>>) -> Self {
            self.with(stringify!($name), values.into())
        })*
    };
}

impl Datum {
    /// An example without loss inputs.
    pub fn new(input: impl Into<ModelInput>) -> Self {
        Datum { input: input.into(), loss_inputs: Vec::new() }
    }

    /// An example of next-token training: the model reads all tokens except the last one, and
    /// the target of each is the next one.
    pub fn next_token(tokens: &[i32]) -> Self {
        let n = tokens.len().saturating_sub(1);
        let targets: Vec<i64> = tokens.iter().skip(1).map(|token| i64::from(*token)).collect();
        Datum::new(&tokens[..n]).with("target_tokens", targets)
    }

    /// An example of reinforcement learning: what the model has read and sampled, the target of
    /// each position, the logprobs of the sampler, and the advantages. All have the length of
    /// the input. [`Loss`](crate::Loss) has the inputs of each loss.
    pub fn sampled(
        input: impl Into<ModelInput>,
        target_tokens: impl Into<Vec<i64>>,
        logprobs: impl Into<Vec<f32>>,
        advantages: impl Into<Vec<f32>>,
    ) -> Self {
        Datum::new(input).target_tokens(target_tokens).logprobs(logprobs).advantages(advantages)
    }

    /// The token that follows each position.
    #[must_use]
    pub fn target_tokens(self, values: impl Into<Vec<i64>>) -> Self {
        self.with("target_tokens", values.into())
    }

    floats! {
        /// The weight of each position. Default: 1.
        weights;
        /// The logprobs of the targets when they were sampled.
        logprobs;
        /// The advantage of each position.
        advantages;
        /// The lower bound of the ratio at each position, in place of the setting.
        clip_low_threshold;
        /// The upper bound of the ratio at each position, in place of the setting.
        clip_high_threshold;
        /// The positions whose ratio counts for the sequence, only for [`Gspo`](crate::Gspo).
        sequence_ratio_mask;
    }

    /// Add a loss input by its name: one of those above with another shape, or one that only the
    /// service knows.
    #[must_use]
    pub fn with(mut self, name: &str, tensor: impl Into<Tensor>) -> Self {
        self.loss_inputs.push((name.into(), tensor.into()));
        self
    }
}

/// A model input in C. It points into the [`ModelInput`].
pub(crate) struct InputArgs {
    chunks: Vec<tnk_chunk_t>,
    _texts: Vec<CString>,
}

impl InputArgs {
    fn new(input: &ModelInput) -> Result<InputArgs> {
        let mut made = InputArgs { chunks: Vec::new(), _texts: Vec::new() };
        for chunk in input.chunks() {
            let mut to: tnk_chunk_t = unsafe { std::mem::zeroed() };
            match chunk {
                Chunk::Tokens(tokens) => {
                    to.kind = TNK_CHUNK_TEXT;
                    to.tokens = tokens.as_ptr();
                    to.n_tokens = tokens.len();
                }
                Chunk::Image { bytes, format, expected_tokens } => {
                    to.kind = TNK_CHUNK_IMAGE;
                    to.bytes = bytes.as_ptr().cast();
                    to.n_bytes = bytes.len();
                    set_image(&mut to, *format, *expected_tokens);
                }
                Chunk::ImagePointer { location, format, expected_tokens } => {
                    to.kind = TNK_CHUNK_IMAGE_POINTER;
                    let text = c_string("the location of an image", location)?;
                    to.location = text.as_ptr();
                    made._texts.push(text);
                    set_image(&mut to, *format, *expected_tokens);
                }
            }
            made.chunks.push(to);
        }
        Ok(made)
    }

    fn view(&self) -> tnk_model_input_t {
        tnk_model_input_t {
            tokens: null(),
            n_tokens: 0,
            chunks: self.chunks.as_ptr(),
            n_chunks: self.chunks.len(),
        }
    }
}

fn set_image(to: &mut tnk_chunk_t, format: ImageFormat, expected_tokens: Option<i32>) {
    to.format = if format == ImageFormat::Png { TNK_PNG } else { TNK_JPEG };
    to.expected_tokens = expected_tokens.unwrap_or(0);
}

/// A prompt with its form in C.
pub(crate) struct PromptArgs {
    _input: ModelInput,
    args: InputArgs,
}
// It points to its own memory only, which does not move.
unsafe impl Send for PromptArgs {}

impl PromptArgs {
    pub fn new(input: ModelInput) -> Result<PromptArgs> {
        let args = InputArgs::new(&input)?;
        Ok(PromptArgs { _input: input, args })
    }

    pub fn view(&self) -> tnk_model_input_t {
        self.args.view()
    }
}

/// The arguments of a pass, until the library has read the data.
pub(crate) struct PassArgs {
    _data: Arc<[Datum]>,
    _inputs: Vec<InputArgs>,
    _loss_inputs: Vec<Vec<tnk_loss_input_t>>,
    _names: Vec<CString>,
    loss: LossArgs,
    pub datums: Vec<tnk_datum_t>,
}
// They point to memory of their own, which does not move and which nobody changes.
unsafe impl Send for PassArgs {}
unsafe impl Sync for PassArgs {}

impl PassArgs {
    pub fn new(data: Arc<[Datum]>, loss: &Loss) -> Result<PassArgs> {
        let mut names = Vec::new();
        let mut inputs = Vec::with_capacity(data.len());
        let mut loss_inputs = Vec::with_capacity(data.len());
        let mut datums = Vec::with_capacity(data.len());
        for datum in data.iter() {
            let input = InputArgs::new(&datum.input)?;
            let mut list = Vec::with_capacity(datum.loss_inputs.len());
            for (name, tensor) in &datum.loss_inputs {
                let name = c_string("the name of a loss input", name)?;
                list.push(tnk_loss_input_t { name: name.as_ptr(), tensor: tensor.to_c() });
                names.push(name);
            }
            let mut to: tnk_datum_t = unsafe { std::mem::zeroed() };
            to.input = input.view();
            to.loss_inputs = list.as_ptr();
            to.n_loss_inputs = list.len();
            datums.push(to);
            inputs.push(input);
            loss_inputs.push(list);
        }
        Ok(PassArgs {
            loss: LossArgs::new(loss)?,
            _data: data,
            _inputs: inputs,
            _loss_inputs: loss_inputs,
            _names: names,
            datums,
        })
    }

    /// Options that name no loss.
    pub fn bare_options() -> tnk_pass_options_t {
        unsafe { crate::text::init("tnk_pass_options_t\0") }
    }

    pub fn options(&self) -> tnk_pass_options_t {
        let mut options = PassArgs::bare_options();
        self.loss.set(&mut options);
        options
    }
}
