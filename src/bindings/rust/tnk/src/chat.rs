// SPDX-License-Identifier: MIT
//! Conversations: messages to tokens, and sampled tokens to messages. Needs the feature `chat`.
//!
//! A [`Template`] is the model's own chat template. A [`Chat`] has messages. Together with a
//! [`Tokenizer`] they make prompts and training examples, and a [`Parser`] reads the answer. All
//! functions are synchronous and send nothing.
use std::ffi::{CStr, CString};
use std::mem::{size_of_val, zeroed};
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};
use std::slice;
use std::time::{SystemTime, UNIX_EPOCH};

use tnk_sys::*;

use crate::data::Datum;
use crate::engine::Raw;
use crate::error::{string, Code, Error, Result};
use crate::text::{c_string, choice, setters};

/// The JSON format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// The format of templates.
    Template,
    /// Request body of OpenAI's chat completions.
    OpenAi,
    /// Request body of OpenAI's responses.
    Responses,
    /// Request body of Anthropic's messages.
    Anthropic,
}

impl Shape {
    fn to_c(self) -> tnk_chat_shape_t {
        match self {
            Shape::Template => TNK_CHAT_TEMPLATE,
            Shape::OpenAi => TNK_CHAT_OPENAI,
            Shape::Responses => TNK_CHAT_RESPONSES,
            Shape::Anthropic => TNK_CHAT_ANTHROPIC,
        }
    }
}

/// How the models of a family write thoughts and tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Family {
    Plain,
    Think,
    Hermes,
    Xml,
    DeepSeek,
    Dsml,
    Kimi,
    Glm,
    Harmony,
    Mistral,
    Llama,
    Xtml,
}

const FAMILIES: [(Family, tnk_chat_family_t); 12] = [
    (Family::Plain, TNK_CHAT_PLAIN),
    (Family::Think, TNK_CHAT_THINK),
    (Family::Hermes, TNK_CHAT_HERMES),
    (Family::Xml, TNK_CHAT_XML),
    (Family::DeepSeek, TNK_CHAT_DEEPSEEK),
    (Family::Dsml, TNK_CHAT_DSML),
    (Family::Kimi, TNK_CHAT_KIMI),
    (Family::Glm, TNK_CHAT_GLM),
    (Family::Harmony, TNK_CHAT_HARMONY),
    (Family::Mistral, TNK_CHAT_MISTRAL),
    (Family::Llama, TNK_CHAT_LLAMA),
    (Family::Xtml, TNK_CHAT_XTML),
];

impl Family {
    pub(crate) fn to_c(self) -> tnk_chat_family_t {
        FAMILIES.iter().find(|one| one.0 == self).map_or(TNK_CHAT_PLAIN, |one| one.1)
    }
}

/// The settings of a renderer of Tinker's cookbook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renderer {
    /// How its answers are parsed.
    pub family: Family,
    /// Variables for [`Chat::set`], with values in JSON.
    pub variables: Vec<(String, String)>,
    /// Strings that end an answer.
    pub stops: Vec<String>,
}

/// The settings of a renderer of Tinker's cookbook by its name, such as "qwen3".
pub fn renderer(name: &str) -> Option<Renderer> {
    let name = CString::new(name).ok()?;
    let found = unsafe { tnk_chat_find(name.as_ptr()).as_ref() }?;
    let family = FAMILIES.iter().find(|one| one.1 == found.family)?.0;
    let pair = |i| unsafe {
        let pair = &*found.variables.add(i);
        (string(pair.name).unwrap_or_default(), string(pair.value).unwrap_or_default())
    };
    let variables = (0..found.n_variables as usize).map(pair).collect();
    Some(Renderer { family, variables, stops: unsafe { strings(found.stops) } })
}

/// # Safety
/// A list of strings with NULL at its end, or NULL.
unsafe fn strings(list: *const *const c_char) -> Vec<String> {
    let mut found = Vec::new();
    if list.is_null() {
        return found;
    }
    while let Some(one) = unsafe { string(*list.add(found.len())) } {
        found.push(one);
    }
    found
}

/// A list of strings with NULL at its end. It points to its own strings.
struct List {
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl List {
    fn new(what: &str, texts: &[String]) -> Result<List> {
        let texts = texts.iter().map(|text| c_string(what, text)).collect::<Result<Vec<_>>>()?;
        let mut pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(null());
        Ok(List { _texts: texts, pointers })
    }
}

fn empty_error() -> tnk_chat_error_t {
    unsafe { zeroed() }
}

fn check(err: c_int, error: &tnk_chat_error_t) -> Result<()> {
    if err == 0 {
        return Ok(());
    }
    // Terminated in the array.
    let text = unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_string_lossy().into_owned();
    Err(if text.is_empty() { Error::from_code(Code(err)) } else { Error::new(Code(err), text) })
}

/// # Safety
/// A string that the library allocated for this conversation, or NULL.
unsafe fn taken(chat: *const tnk_chat_t, text: *mut c_char) -> String {
    let copy = unsafe { string(text) }.unwrap_or_default();
    unsafe { tnk_chat_free_text(chat, text) };
    copy
}

// ---- Tokenizers ----

/// A tokenizer. It does not change, and any thread may use it. A clone is the same tokenizer.
pub struct Tokenizer {
    plugin: *const tnk_tokenizer_plugin_t,
    /// NULL for bytes.
    raw: *mut c_void,
}
// The plug-in says so.
unsafe impl Send for Tokenizer {}
unsafe impl Sync for Tokenizer {}

impl Tokenizer {
    /// The tokenizer in which each byte is a token, as that of the model tnk/byte-lm.
    pub fn bytes() -> Tokenizer {
        Tokenizer { plugin: unsafe { tnk_chat_bytes_plugin() }, raw: null_mut() }
    }

    pub(crate) fn to_c(&self) -> tnk_chat_tokenizer_t {
        tnk_chat_tokenizer_t { plugin: self.plugin, tokenizer: self.raw }
    }

    /// Encode a string. Special tokens in it become such tokens.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        extern "C" fn take(ids: *const i32, n: usize, user: *mut c_void) -> c_int {
            append(ids, n, user)
        }
        let mut ids: Vec<i32> = Vec::new();
        let encode = unsafe { (*self.plugin).encode };
        self.call(|why, size| unsafe {
            let user = &mut ids as *mut Vec<i32> as *mut c_void;
            let bytes = text.as_ptr().cast();
            encode.map(|encode| encode(self.raw, bytes, text.len(), 0, Some(take), user, why, size))
        })?;
        Ok(ids)
    }

    /// Decode token ids. Bytes that are no characters become U+FFFD.
    pub fn decode(&self, ids: &[i32]) -> Result<String> {
        extern "C" fn take(bytes: *const c_char, n: usize, user: *mut c_void) -> c_int {
            append(bytes as *const u8, n, user)
        }
        let mut bytes: Vec<u8> = Vec::new();
        let decode = unsafe { (*self.plugin).decode };
        self.call(|why, size| unsafe {
            let user = &mut bytes as *mut Vec<u8> as *mut c_void;
            decode.map(|decode| {
                decode(self.raw, ids.as_ptr(), ids.len(), 0, Some(take), user, why, size)
            })
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Call a function of the plug-in, which may be missing.
    fn call(&self, call: impl FnOnce(*mut c_char, usize) -> Option<c_int>) -> Result<()> {
        let mut why = [0 as c_char; 512];
        let err = call(why.as_mut_ptr(), why.len()).unwrap_or(TNK_EUNSUPPORTED);
        if err == 0 {
            return Ok(());
        }
        match unsafe { string(why.as_ptr()) }.filter(|text| !text.is_empty()) {
            Some(text) => Err(Error::new(Code(err), text)),
            None => Err(Error::from_code(Code(err))),
        }
    }
}

/// For a plug-in: append elements to the vector that `user` points to.
fn append<T: Copy>(from: *const T, n: usize, user: *mut c_void) -> c_int {
    // A panic must not reach C.
    let appended = catch_unwind(AssertUnwindSafe(|| {
        if n > 0 {
            let to = unsafe { &mut *(user as *mut Vec<T>) };
            to.extend_from_slice(unsafe { slice::from_raw_parts(from, n) });
        }
    }));
    if appended.is_ok() {
        0
    } else {
        TNK_ENOMEM
    }
}

#[cfg(feature = "tokenizers")]
impl Tokenizer {
    /// Load a tokenizer from a file, or from a folder with tokenizer.json, tekken.json,
    /// tiktoken.model or tokenizer.model.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Tokenizer> {
        let path = c_string("the path", &path.as_ref().to_string_lossy())?;
        let mut error: tnk_tokenizer_error_t = unsafe { zeroed() };
        let mut raw = null_mut();
        let err = unsafe { tnk_tokenizer_load(&mut raw, path.as_ptr(), null(), &mut error) };
        Tokenizer::of(raw, err, &error)
    }

    /// Load a tokenizer from the contents of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Tokenizer> {
        let mut error: tnk_tokenizer_error_t = unsafe { zeroed() };
        let mut raw = null_mut();
        let data = bytes.as_ptr() as *const c_void;
        let err =
            unsafe { tnk_tokenizer_load_memory(&mut raw, data, bytes.len(), null(), &mut error) };
        Tokenizer::of(raw, err, &error)
    }

    fn of(raw: *mut tnk_tokenizer_t, err: c_int, error: &tnk_tokenizer_error_t) -> Result<Self> {
        if err != 0 {
            let text = unsafe { string(error.text.as_ptr()) }.unwrap_or_default();
            return Err(Error::new(Code(err), text));
        }
        Ok(Tokenizer { plugin: unsafe { tnk_tokenizer_plugin() }, raw: raw.cast() })
    }
}

impl Clone for Tokenizer {
    fn clone(&self) -> Self {
        #[cfg(feature = "tokenizers")]
        if !self.raw.is_null() {
            unsafe { tnk_tokenizer_ref(self.raw.cast()) };
        }
        Tokenizer { plugin: self.plugin, raw: self.raw }
    }
}

impl Drop for Tokenizer {
    fn drop(&mut self) {
        #[cfg(feature = "tokenizers")]
        if !self.raw.is_null() {
            unsafe { tnk_tokenizer_unref(self.raw.cast()) };
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokenizer")
    }
}

// ---- Conversations ----

/// A conversation: messages, tools and variables. `Send`; one thread at a time uses it.
pub struct Chat {
    raw: Raw<tnk_chat_t>,
    // `Raw` is `Sync`, and this must not be.
    _one_thread: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Chat {
    /// An empty conversation.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn new() -> Chat {
        let raw = unsafe { tnk_chat_new(null()) };
        assert!(!raw.is_null(), "there is no memory for a conversation");
        Chat { raw: Raw(raw), _one_thread: std::marker::PhantomData }
    }

    /// Append a message of plain text. `role` is "system", "user", "assistant" or another role of
    /// the template.
    pub fn add(&mut self, role: &str, text: &str) -> Result<()> {
        let (role, text) = (c_string("the role", role)?, c_string("the message", text)?);
        let mut error = empty_error();
        let err = unsafe { tnk_chat_add(self.raw.0, role.as_ptr(), text.as_ptr(), &mut error) };
        check(err, &error)
    }

    /// Append the messages of a JSON document: a request body, or an array of messages. Its tools
    /// replace earlier ones.
    pub fn read(&mut self, shape: Shape, json: &str) -> Result<()> {
        let mut error = empty_error();
        let bytes = json.as_ptr().cast();
        let err = unsafe { tnk_chat_read(self.raw.0, shape.to_c(), bytes, json.len(), &mut error) };
        check(err, &error)
    }

    /// The messages and tools as JSON.
    pub fn write(&self, shape: Shape) -> Result<String> {
        let (mut error, mut text) = (empty_error(), null_mut());
        let err =
            unsafe { tnk_chat_write(self.raw.0, shape.to_c(), &mut text, null_mut(), &mut error) };
        check(err, &error)?;
        Ok(unsafe { taken(self.raw.0, text) })
    }

    /// Set a variable of the template, such as "enable_thinking" to "false". The value is JSON.
    pub fn set(&mut self, name: &str, json: &str) -> Result<()> {
        let (name, json) = (c_string("the name", name)?, c_string("the value", json)?);
        let mut error = empty_error();
        let err = unsafe { tnk_chat_set(self.raw.0, name.as_ptr(), json.as_ptr(), &mut error) };
        check(err, &error)
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        unsafe { tnk_chat_count(self.raw.0) }
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The indices of the assistant's messages.
    pub fn answers(&self) -> Vec<usize> {
        let mut found = Vec::new();
        loop {
            let from = found.last().map_or(0, |last| last + 1);
            match unsafe { tnk_chat_next_answer(self.raw.0, from) } {
                usize::MAX => return found,
                index => found.push(index),
            }
        }
    }
}

impl Default for Chat {
    fn default() -> Self {
        Chat::new()
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        unsafe { tnk_chat_free(self.raw.0) };
    }
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("len", &self.len()).finish()
    }
}

// ---- Text and tokens ----

/// Which tokens are trained.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Train {
    /// None: a prompt.
    Nothing,
    /// Those of the last message, which must be the assistant's.
    LastAnswer,
    /// Those of all messages of the assistant.
    AllAnswers,
    /// Those of messages with one of these roles.
    Roles(Vec<String>),
    /// All of them.
    Everything,
    /// One weight for each message.
    ByMessage(Vec<f32>),
}

/// Options for text and tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodeOptions {
    train_on: Option<Train>,
    generation_prompt: Option<bool>,
    by_parts: Option<bool>,
    text_roles: Vec<String>,
    now_s: Option<i64>,
}

impl EncodeOptions {
    /// All options have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Which tokens have a weight. Default: none.
        train_on: Train;
        /// Whether to append the beginning of the next answer. Default: yes for a prompt, if the
        /// last message is not the assistant's.
        generation_prompt: bool;
        /// Whether headers and contents are tokenized separately, as the renderers of Tinker's
        /// cookbook do. Default: no.
        by_parts: bool;
        /// The time for templates that show the date: seconds since 1970, in the time zone to
        /// show. Default: now, in UTC.
        now_s: i64;
        /// Roles whose messages are plain text, such as "user" and "tool": a control token in
        /// them cannot end the turn. Default: none.
        text_roles: Vec<String> => std::convert::identity;
    }
}

/// Options in C, which point to their own memory.
struct OptionArgs {
    roles: List,
    text_roles: List,
    now_s: Box<i64>,
    weights: Vec<f32>,
    options: tnk_chat_options_t,
}

extern "C" fn now_of(user: *mut c_void) -> i64 {
    unsafe { *(user as *const i64) }
}

impl OptionArgs {
    fn new(from: &EncodeOptions) -> Result<OptionArgs> {
        let mut options: tnk_chat_options_t = unsafe { zeroed() };
        options.size = size_of_val(&options);
        options.generation_prompt = choice(from.generation_prompt);
        options.by_parts = choice(from.by_parts);
        let (mut roles, mut weights) = (Vec::new(), Vec::new());
        options.train_on = match from.train_on.clone() {
            None | Some(Train::Nothing) => TNK_CHAT_TRAIN_NOTHING,
            Some(Train::LastAnswer) => TNK_CHAT_TRAIN_LAST_ANSWER,
            Some(Train::AllAnswers) => TNK_CHAT_TRAIN_ALL_ANSWERS,
            Some(Train::Everything) => TNK_CHAT_TRAIN_EVERYTHING,
            Some(Train::Roles(list)) => {
                roles = list;
                TNK_CHAT_TRAIN_ROLES
            }
            Some(Train::ByMessage(list)) => {
                weights = list;
                TNK_CHAT_TRAIN_BY_MESSAGE
            }
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let mut made = OptionArgs {
            roles: List::new("a role", &roles)?,
            text_roles: List::new("a role", &from.text_roles)?,
            now_s: Box::new(from.now_s.unwrap_or(now as i64)),
            weights,
            options,
        };
        made.options.n_roles = roles.len() as u32;
        made.options.roles = made.roles.pointers.as_ptr();
        made.options.text_roles = made.text_roles.pointers.as_ptr();
        made.options.n_text_roles = from.text_roles.len();
        made.options.message_weights = made.weights.as_ptr();
        made.options.n_message_weights = made.weights.len();
        made.options.now_s = Some(now_of);
        made.options.user = &*made.now_s as *const i64 as *mut c_void;
        Ok(made)
    }
}

/// Token ids, each with its weight and its message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded {
    /// The ids.
    pub ids: Vec<i32>,
    /// The weight of each id: 0 if it is not trained.
    pub weights: Vec<f32>,
    /// The index of the message of each id, or -1.
    pub messages: Vec<i32>,
}

impl Encoded {
    /// An example that trains the ids that have a weight.
    pub fn datum(&self) -> Datum {
        Datum::next_token(&self.ids).weights(self.weights.get(1..).unwrap_or(&[]))
    }
}

/// A compiled chat template. It does not change, and any thread may use it. A clone is the same
/// template.
pub struct Template {
    raw: Raw<tnk_chat_template_t>,
}

impl Template {
    /// The plain template of roles: "User: Hi", an empty line, "Assistant: Hello" and so on.
    pub fn plain() -> Result<Template> {
        Template::open(None, None)
    }

    /// Compile a template. `config` has the contents of tokenizer_config.json, whose special
    /// tokens become variables. Without a text, the template of the config is used.
    pub fn open(text: Option<&str>, config: Option<&str>) -> Result<Template> {
        let mut options: tnk_chat_template_options_t = unsafe { zeroed() };
        options.size = size_of_val(&options);
        if let Some(config) = config {
            options.config = config.as_ptr().cast();
            options.n_config = config.len();
        }
        let bytes = text.map_or(null(), |text| text.as_ptr().cast());
        let n = text.map_or(0, str::len);
        let (mut error, mut raw) = (empty_error(), null_mut());
        let err = unsafe { tnk_chat_template_open(&mut raw, bytes, n, &options, &mut error) };
        check(err, &error)?;
        Ok(Template { raw: Raw(raw) })
    }

    /// Compile the template of a model from its folder.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Template> {
        let path = c_string("the path", &path.as_ref().to_string_lossy())?;
        let (mut error, mut raw) = (empty_error(), null_mut());
        let err = unsafe { tnk_chat_template_load(&mut raw, path.as_ptr(), null(), &mut error) };
        check(err, &error)?;
        Ok(Template { raw: Raw(raw) })
    }

    #[cfg(feature = "gateway")]
    pub(crate) fn raw(&self) -> *mut tnk_chat_template_t {
        self.raw.0
    }

    /// The strings that end an answer, for [`Stop::Texts`](crate::Stop::Texts).
    pub fn stops(&self) -> Vec<String> {
        unsafe { strings(tnk_chat_template_stops(self.raw.0)) }
    }

    /// Render a conversation as text.
    pub fn render(&self, chat: &Chat, options: &EncodeOptions) -> Result<String> {
        let args = OptionArgs::new(options)?;
        let (mut error, mut text) = (empty_error(), null_mut());
        let err = unsafe {
            let (template, chat) = (self.raw.0, chat.raw.0);
            tnk_chat_text(&mut text, null_mut(), template, chat, &args.options, &mut error)
        };
        check(err, &error)?;
        Ok(unsafe { taken(chat.raw.0, text) })
    }

    fn fill(
        &self,
        options: &EncodeOptions,
        encode: impl FnOnce(
            *mut tnk_chat_tokens_t,
            *const tnk_chat_options_t,
            *mut tnk_chat_error_t,
        ) -> c_int,
    ) -> Result<Encoded> {
        let args = OptionArgs::new(options)?;
        let tokens = Tokens(unsafe { tnk_chat_tokens_new(null()) });
        if tokens.0.is_null() {
            return Err(Error::from_code(Code::ENOMEM));
        }
        let mut error = empty_error();
        let err = encode(tokens.0, &args.options, &mut error);
        check(err, &error)?;
        Ok(tokens.read())
    }

    /// Encode a conversation as tokens with weights: a prompt, or a training example.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        chat: &Chat,
        options: &EncodeOptions,
    ) -> Result<Encoded> {
        let plugin = tokenizer.to_c();
        self.fill(options, |tokens, options, error| unsafe {
            tnk_chat_encode(tokens, self.raw.0, &plugin, chat.raw.0, options, error)
        })
    }

    /// Encode a training example for one answer: the messages up to it, of which only the answer
    /// is trained. [`Chat::answers`] has the indices.
    pub fn encode_answer(
        &self,
        tokenizer: &Tokenizer,
        chat: &Chat,
        index: usize,
        options: &EncodeOptions,
    ) -> Result<Encoded> {
        let plugin = tokenizer.to_c();
        self.fill(options, |tokens, options, error| unsafe {
            let template = self.raw.0;
            tnk_chat_encode_answer(tokens, template, &plugin, chat.raw.0, index, options, error)
        })
    }

    /// Encode the tokens that follow a sampled answer: the rest of its end, the messages of the
    /// conversation from `first` on, and the generation prompt. `ids` are the prompt and the
    /// sampled ids, which are not tokenized again.
    pub fn encode_next(
        &self,
        tokenizer: &Tokenizer,
        ids: &[i32],
        chat: &Chat,
        first: usize,
        options: &EncodeOptions,
    ) -> Result<Encoded> {
        let plugin = tokenizer.to_c();
        let (start, n) = (ids.as_ptr(), ids.len());
        self.fill(options, |tokens, options, error| unsafe {
            let (template, chat) = (self.raw.0, chat.raw.0);
            tnk_chat_continue(tokens, template, &plugin, start, n, chat, first, options, error)
        })
    }
}

impl Clone for Template {
    fn clone(&self) -> Self {
        Template { raw: Raw(unsafe { tnk_chat_template_ref(self.raw.0) }) }
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        unsafe { tnk_chat_template_unref(self.raw.0) };
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("stops", &self.stops()).finish()
    }
}

struct Tokens(*mut tnk_chat_tokens_t);

impl Tokens {
    fn read(&self) -> Encoded {
        let mut n = 0;
        let ids = unsafe { tnk_chat_tokens_ids(self.0, &mut n) };
        if n == 0 {
            return Encoded::default();
        }
        unsafe {
            Encoded {
                ids: slice::from_raw_parts(ids, n).to_vec(),
                weights: slice::from_raw_parts(tnk_chat_tokens_weights(self.0), n).to_vec(),
                messages: slice::from_raw_parts(tnk_chat_tokens_messages(self.0), n).to_vec(),
            }
        }
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        unsafe { tnk_chat_tokens_free(self.0) };
    }
}

// ---- Answers ----

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More of the thoughts.
    Thinking(String),
    /// More of the content.
    Content(String),
    /// A call begins.
    CallBegin {
        /// Its index, from 0.
        call: u32,
        /// The name of the function.
        name: String,
        /// Its id.
        id: String,
    },
    /// More JSON of the arguments of a call.
    Arguments {
        /// Its index.
        call: u32,
        /// The JSON.
        text: String,
    },
    /// A call is complete.
    CallEnd {
        /// Its index.
        call: u32,
    },
    /// Text that looks like a call but cannot be parsed.
    Unparsed(String),
}

extern "C" fn on_delta(delta: *const tnk_chat_delta_t, user: *mut c_void) {
    // A panic must not reach C. The answer then lacks a piece, as without memory.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (delta, to) = unsafe { (&*delta, &mut *(user as *mut Vec<Delta>)) };
        let text = if delta.n == 0 {
            String::new()
        } else {
            let bytes = unsafe { slice::from_raw_parts(delta.text as *const u8, delta.n) };
            String::from_utf8_lossy(bytes).into_owned()
        };
        let call = delta.call;
        to.push(match delta.kind {
            TNK_CHAT_DELTA_THINKING => Delta::Thinking(text),
            TNK_CHAT_DELTA_CONTENT => Delta::Content(text),
            TNK_CHAT_DELTA_CALL_BEGIN => Delta::CallBegin {
                call,
                name: unsafe { string(delta.name) }.unwrap_or_default(),
                id: unsafe { string(delta.id) }.unwrap_or_default(),
            },
            TNK_CHAT_DELTA_ARGUMENTS => Delta::Arguments { call, text },
            TNK_CHAT_DELTA_CALL_END => Delta::CallEnd { call },
            _ => Delta::Unparsed(text),
        });
    }));
}

/// A parser for one answer. `Send`; one thread at a time uses it.
pub struct Parser {
    raw: Raw<tnk_chat_parser_t>,
    _tokenizer: Tokenizer,
    _one_thread: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Parser {
    /// A parser. The tools of `chat` give the types of arguments.
    pub fn new(family: Family, tokenizer: &Tokenizer, chat: Option<&Chat>) -> Result<Parser> {
        let (mut error, mut raw) = (empty_error(), null_mut());
        let chat = chat.map_or(null(), |chat| chat.raw.0 as *const tnk_chat_t);
        let err = unsafe {
            let (family, plugin) = (family.to_c(), tokenizer.to_c());
            tnk_chat_parser_open(&mut raw, family, &plugin, chat, null(), &mut error)
        };
        check(err, &error)?;
        Ok(Parser {
            raw: Raw(raw),
            _tokenizer: tokenizer.clone(),
            _one_thread: std::marker::PhantomData,
        })
    }

    /// Set the prompt before the first ids: it may have begun a block of thoughts. `stops` are the
    /// strings that end the answer, such as [`Template::stops`]; None means those of the family.
    pub fn prompt(&mut self, ids: &[i32], stops: Option<&[String]>) -> Result<()> {
        let list = stops.map(|stops| List::new("a stop string", stops)).transpose()?;
        let stops = list.as_ref().map_or(null(), |list| list.pointers.as_ptr());
        Code::check(unsafe { tnk_chat_parser_prompt(self.raw.0, ids.as_ptr(), ids.len(), stops) })
    }

    /// Parse sampled ids; what is certain so far.
    pub fn feed(&mut self, ids: &[i32]) -> Result<Vec<Delta>> {
        let mut deltas: Vec<Delta> = Vec::new();
        let user = &mut deltas as *mut Vec<Delta> as *mut c_void;
        Code::check(unsafe {
            tnk_chat_parser_feed(self.raw.0, ids.as_ptr(), ids.len(), Some(on_delta), user)
        })?;
        Ok(deltas)
    }

    /// End the answer: the rest of it, and the whole message as JSON of the format
    /// [`Shape::Template`].
    pub fn finish(self) -> Result<(Vec<Delta>, String)> {
        let mut deltas: Vec<Delta> = Vec::new();
        let user = &mut deltas as *mut Vec<Delta> as *mut c_void;
        let mut json = null();
        Code::check(unsafe {
            tnk_chat_parser_finish(self.raw.0, Some(on_delta), user, &mut json, null_mut())
        })?;
        let message = unsafe { string(json) }.unwrap_or_default();
        Ok((deltas, message))
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        unsafe { tnk_chat_parser_free(self.raw.0) };
    }
}

impl std::fmt::Debug for Parser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parser")
    }
}
