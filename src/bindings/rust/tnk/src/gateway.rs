// SPDX-License-Identifier: MIT
//! Gateways: a server in this process that answers chat requests from the current weights and
//! records them as training examples. Needs the feature `gateway`.
use std::ffi::CString;
use std::mem::{size_of_val, zeroed};
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::slice;
use std::sync::Arc;

use tnk_sys::*;

use crate::chat::{Family, Template, Tokenizer};
use crate::engine::{loop_of, Engine, Guest, Loop, LoopCell, Raw};
use crate::error::{string, Code, Error, Result};
use crate::operation::{Operation, Shared};
use crate::service::{SamplingArgs, SamplingOptions, Service, ServiceInner};
use crate::text::{c_string, choice, optional, pointer, setters, Pairs};

/// TNK_GATEWAY_KEY_SIZE and TNK_GATEWAY_KEY_ID_SIZE. The library checks them.
const KEY_SIZE: usize = 80;
const ID_SIZE: usize = 32;

/// Options of a gateway. What is not set has the default of `tnk/gateway.h`.
#[derive(Clone)]
pub struct GatewayOptions {
    tokenizer: Tokenizer,
    template: Option<Template>,
    family: Family,
    host: Option<String>,
    port: u16,
    key: Option<String>,
    admin_key: Option<String>,
    model: Option<String>,
    record: Option<String>,
    record_sync: Option<bool>,
    keep_control_tokens: Option<bool>,
    max_requests: u32,
    max_tokens: i32,
    usd_prompt: f64,
    usd_sampled: f64,
    variables: Vec<(String, String)>,
}

impl GatewayOptions {
    /// Options with the tokenizer of the model.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        GatewayOptions {
            tokenizer: tokenizer.clone(),
            template: None,
            family: Family::Plain,
            host: None,
            port: 0,
            key: None,
            admin_key: None,
            model: None,
            record: None,
            record_sync: None,
            keep_control_tokens: None,
            max_requests: 0,
            max_tokens: 0,
            usd_prompt: 0.0,
            usd_sampled: 0.0,
            variables: Vec::new(),
        }
    }

    setters! {
        /// The chat template of the model. Default: the plain template of roles.
        template: Template;
        /// How answers are parsed. Default: everything is content.
        family: Family => std::convert::identity;
        /// The numeric address. Default: 127.0.0.1. Another one needs a key.
        host: &str;
        /// The port; 0 selects a free one.
        port: u16 => std::convert::identity;
        /// The key with which agents sample.
        key: &str;
        /// The key for rewards, weights, keys and the record.
        admin_key: &str;
        /// The name of the model that clients see. Default: that of the base model.
        model: &str;
        /// The file of the record, or the address of a server that shares it. Default: the
        /// record is kept in memory.
        record: &str;
        /// Whether each turn is on the disk before its response is sent. Default: no.
        record_sync: bool;
        /// Whether control tokens in user messages and tool results have an effect. Default: no.
        keep_control_tokens: bool;
        /// The most requests in progress; 0 means 16,384.
        max_requests: u32 => std::convert::identity;
        /// The most tokens for clients that set no limit; 0 means 1,024.
        max_tokens: i32 => std::convert::identity;
        /// The price of a million prompt tokens in USD, for keys with a limit of costs.
        usd_prompt: f64 => std::convert::identity;
        /// The price of a million sampled tokens in USD.
        usd_sampled: f64 => std::convert::identity;
    }

    /// Set a variable of the template; its value is JSON.
    #[must_use]
    pub fn variable(mut self, name: &str, json: &str) -> Self {
        self.variables.push((name.into(), json.into()));
        self
    }
}

impl std::fmt::Debug for GatewayOptions {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("model", &self.model)
            .finish()
    }
}

/// Options of a key for one session. 0 means no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyOptions {
    session: Option<String>,
    expires_in_s: u64,
    max_requests: u64,
    max_tokens: u64,
    max_turns: u64,
    max_usd: f64,
    max_concurrent: u32,
    max_per_minute: u32,
    may_reward: Option<bool>,
}

impl KeyOptions {
    /// A key for a new session, without limits.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// The name of the session. Default: a new name.
        session: &str;
        /// The lifetime in seconds.
        expires_in_s: u64 => std::convert::identity;
        /// The most answered requests.
        max_requests: u64 => std::convert::identity;
        /// The most tokens of prompts and answers together.
        max_tokens: u64 => std::convert::identity;
        /// The most answers.
        max_turns: u64 => std::convert::identity;
        /// The most costs in USD. It needs prices.
        max_usd: f64 => std::convert::identity;
        /// The most requests in progress.
        max_concurrent: u32 => std::convert::identity;
        /// The most requests in a minute.
        max_per_minute: u32 => std::convert::identity;
        /// Whether its client may set rewards. Default: no.
        may_reward: bool;
    }
}

/// A key for one session.
#[derive(Clone, PartialEq, Eq)]
pub struct GatewayKey {
    /// The key, which is secret. The gateway keeps only its hash.
    pub key: String,
    /// Its id, which is not secret.
    pub id: String,
}

impl std::fmt::Debug for GatewayKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayKey").field("id", &self.id).finish()
    }
}

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStats {
    /// Requests of any kind.
    pub n_requests: u64,
    /// Sampling requests that were answered.
    pub n_answered: u64,
    /// Sampling requests that were rejected or failed.
    pub n_failed: u64,
    /// Sampled tokens in responses.
    pub n_tokens: u64,
    /// Sampling requests in progress.
    pub n_under_way: u32,
    /// Open connections.
    pub n_connections: u32,
    /// The version of the current weights; 0 if there are none.
    pub version: u32,
}

// ---- Its life, on the runtime's thread ----

enum Life {
    Open(Raw<tnk_gateway_t>),
    /// With the operations that wait for the end.
    Closing(Vec<Arc<Shared<()>>>),
    Closed,
}
impl Default for Life {
    fn default() -> Self {
        Life::Closed
    }
}

/// A gateway as long as it exists. The engine keeps it until it has closed.
struct Gate {
    life: LoopCell<Life>,
    service: Arc<ServiceInner>,
    /// The gateway borrows it.
    _tokenizer: Tokenizer,
}

impl Gate {
    fn engine(&self) -> &Arc<Engine> {
        &self.service.lease.engine
    }

    fn handle(&self, on: &Loop) -> Result<*mut tnk_gateway_t> {
        let life = self.life.of(on);
        let now = life.take();
        let found = match &now {
            Life::Open(handle) => Ok(handle.0),
            _ => Err(Error::new(Code::ECLOSED, "the gateway is closed")),
        };
        life.set(now);
        found
    }

    fn end(self: &Arc<Self>, on: &Loop, waiting: Option<Arc<Shared<()>>>) {
        let life = self.life.of(on);
        match life.take() {
            Life::Open(handle) => {
                life.set(Life::Closing(waiting.into_iter().collect()));
                let user = Arc::into_raw(self.clone()) as *mut c_void;
                unsafe { tnk_gateway_close(handle.0, Some(on_gone), user) };
            }
            Life::Closing(mut all) => {
                all.extend(waiting);
                life.set(Life::Closing(all));
            }
            Life::Closed => {
                if let Some(one) = waiting {
                    one.finish_later(Ok(()));
                }
            }
        }
    }
}

impl Guest for Gate {
    fn host(&self) -> *const c_void {
        Arc::as_ptr(&self.service).cast()
    }

    fn close(self: Arc<Self>, on: &Loop) {
        self.end(on, None);
    }
}

extern "C" fn on_gone(user: *mut c_void) {
    // The reference of `end`.
    let gate = unsafe { Arc::from_raw(user as *const Gate) };
    let engine = gate.engine().clone();
    let on = unsafe { loop_of(&engine) };
    if let Life::Closing(all) = gate.life.of(&on).replace(Life::Closed) {
        for one in all {
            one.finish_later(Ok(()));
        }
    }
    let service = gate.service.clone();
    let guest: Arc<dyn Guest> = gate;
    engine.guest_left(&on, &guest);
    service.close_if_empty(&on);
    // The last references may belong to the program's objects.
    engine.later(Box::new(move || drop((guest, service))));
}

/// The program's side: its last drop closes the gateway.
struct Handle {
    gate: Arc<Gate>,
    address: String,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let gate = self.gate.clone();
        self.gate.engine().must_post(Box::new(move |on: &Loop| gate.end(on, None)));
    }
}

/// A gateway of a service.
///
/// A clone is the same gateway. It closes when [`close`](Gateway::close) is called, when its last
/// clone is dropped, or when its service closes. Calls that return no operation wait for the
/// thread of the library, but for no server. Any thread may use it: it is `Send` and `Sync`.
#[derive(Clone)]
pub struct Gateway {
    handle: Arc<Handle>,
}

/// Strings that the options point to.
struct Args {
    texts: [Option<CString>; 5],
    variables: Pairs,
}

fn gateway_options(options: &GatewayOptions, args: &Args) -> tnk_gateway_options_t {
    let mut to: tnk_gateway_options_t = unsafe { zeroed() };
    to.size = size_of_val(&to);
    to.host = pointer(&args.texts[0]);
    to.key = pointer(&args.texts[1]);
    to.admin_key = pointer(&args.texts[2]);
    to.model = pointer(&args.texts[3]);
    to.record = pointer(&args.texts[4]);
    to.tokenizer = options.tokenizer.to_c();
    to.template_ = options.template.as_ref().map_or(null_mut(), Template::raw);
    to.variables = args.variables.as_ptr();
    to.n_variables = args.variables.len();
    to.family = options.family.to_c();
    to.port = options.port.into();
    to.max_requests = options.max_requests;
    to.max_tokens = options.max_tokens;
    to.record_sync = choice(options.record_sync);
    to.keep_control_tokens = choice(options.keep_control_tokens);
    to.usd_prompt = options.usd_prompt;
    to.usd_sampled = options.usd_sampled;
    to
}

impl Service {
    /// Open a gateway and listen. It samples after [`Gateway::use_weights`]. This call waits for
    /// the thread of the library, which reads the record.
    pub fn open_gateway(&self, options: GatewayOptions) -> Result<Gateway> {
        let args = Args {
            texts: [
                optional("the host", &options.host)?,
                optional("the key", &options.key)?,
                optional("the admin key", &options.admin_key)?,
                optional("the model", &options.model)?,
                optional("the record", &options.record)?,
            ],
            variables: Pairs::new("a variable", &options.variables)?,
        };
        let service = self.inner.clone();
        self.inner.lease.engine.call(move |on| {
            let handle = service.handle(on).ok_or_else(|| Error::from_code(Code::ECLOSED))?;
            let to = gateway_options(&options, &args);
            let (mut raw, mut why) = (null_mut(), [0 as c_char; 512]);
            let size = why.len();
            let err =
                unsafe { tnk_gateway_open(&mut raw, on.uv, handle, &to, why.as_mut_ptr(), size) };
            if err != 0 {
                return Err(explained(err, &why));
            }
            let gate = Arc::new(Gate {
                life: LoopCell::new(Life::Open(Raw(raw))),
                service,
                _tokenizer: options.tokenizer,
            });
            on.engine.guest_came(on, gate.clone());
            let address = unsafe { string(tnk_gateway_address(raw)) }.unwrap_or_default();
            Ok(Gateway { handle: Arc::new(Handle { gate, address }) })
        })?
    }
}

fn explained(err: c_int, why: &[c_char]) -> Error {
    match unsafe { string(why.as_ptr()) }.filter(|text| !text.is_empty()) {
        Some(text) => Error::new(Code(err), text),
        None => Error::from_code(Code(err)),
    }
}

fn check(err: c_int, what: &str) -> Result<()> {
    match Code(err) {
        Code(0) => Ok(()),
        Code::ENOTFOUND => Err(Error::new(Code::ENOTFOUND, format!("there is no such {}", what))),
        Code::EINVAL => Err(Error::new(Code::EINVAL, format!("the {} is not valid", what))),
        code => Err(Error::from_code(code)),
    }
}

/// Appends a line to the vector that `user` points to.
extern "C" fn on_line(user: *mut c_void, line: *const c_char, n: usize) -> c_int {
    // A panic must not reach C.
    let appended = catch_unwind(AssertUnwindSafe(|| {
        let (bytes, lines) =
            unsafe { (slice::from_raw_parts(line as *const u8, n), &mut *(user as *mut Vec<_>)) };
        lines.push(String::from_utf8_lossy(bytes).trim_end().to_string());
    }));
    if appended.is_ok() {
        0
    } else {
        TNK_ENOMEM
    }
}

impl Gateway {
    fn call<R: Send + 'static>(
        &self,
        function: impl FnOnce(*mut tnk_gateway_t) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let gate = self.handle.gate.clone();
        self.handle.gate.engine().call(move |on| function(gate.handle(on)?))?
    }

    /// The URL, such as "http://127.0.0.1:8000". Clients of OpenAI need "/v1" after it.
    pub fn address(&self) -> &str {
        &self.handle.address
    }

    /// Use these weights for new requests. Requests in progress end with the weights that they
    /// have.
    pub fn use_weights(&self, options: SamplingOptions) -> Operation<()> {
        let gate = self.handle.gate.clone();
        let args = match SamplingArgs::new(&options) {
            Ok(args) => args,
            Err(error) => return Operation::failed(gate.engine(), error),
        };
        let engine = gate.engine().clone();
        let keep = gate.clone();
        Operation::start(
            &engine,
            keep,
            |_, _| Ok(()),
            move |on, starter| {
                let promise = match gate.handle(on) {
                    Ok(handle) => unsafe { tnk_gateway_use(handle, &args.to_c()) },
                    Err(_) => return starter.fail(Code::ECLOSED),
                };
                if promise.is_null() {
                    return starter.fail(Code::ENOMEM);
                }
                unsafe { starter.watch(on, promise) };
            },
        )
    }

    /// Create a key for one session. The gateway must have a key or an admin key.
    pub fn create_key(&self, options: KeyOptions) -> Result<GatewayKey> {
        let session = optional("the session", &options.session)?;
        self.call(move |gateway| {
            let mut to: tnk_gateway_key_options_t = unsafe { zeroed() };
            to.size = size_of_val(&to);
            to.session = pointer(&session);
            to.expires_in_s = options.expires_in_s;
            to.max_requests = options.max_requests;
            to.max_tokens = options.max_tokens;
            to.max_turns = options.max_turns;
            to.max_usd = options.max_usd;
            to.max_concurrent = options.max_concurrent;
            to.max_per_minute = options.max_per_minute;
            to.may_reward = choice(options.may_reward);
            let (mut key, mut id) = (Secret::new(), [0 as c_char; ID_SIZE]);
            let (to_id, size) = (id.as_mut_ptr(), id.len());
            let (to_key, key_size) = (key.0.as_mut_ptr(), key.0.len());
            let err =
                unsafe { tnk_gateway_key_create(gateway, &to, to_key, key_size, to_id, size) };
            check(err, "option of a key, or the gateway has no key and")?;
            let id = unsafe { string(id.as_ptr()) }.unwrap_or_default();
            Ok(GatewayKey { key: key.text(), id })
        })
    }

    /// Replace a key by a new one of the same session, with the same limits and use.
    pub fn rotate_key(&self, id: &str) -> Result<String> {
        let id = c_string("the id", id)?;
        self.call(move |gateway| {
            let mut key = Secret::new();
            let (to, size) = (key.0.as_mut_ptr(), key.0.len());
            check(unsafe { tnk_gateway_key_rotate(gateway, id.as_ptr(), to, size) }, "key")?;
            Ok(key.text())
        })
    }

    /// End a key.
    pub fn revoke_key(&self, id: &str) -> Result<()> {
        let id = c_string("the id", id)?;
        self.call(move |gateway| {
            check(unsafe { tnk_gateway_key_revoke(gateway, id.as_ptr()) }, "key")
        })
    }

    /// All keys, each as a JSON object with its session, its limits and its use.
    pub fn keys(&self) -> Result<Vec<String>> {
        self.call(|gateway| {
            let mut lines: Vec<String> = Vec::new();
            let user = &mut lines as *mut Vec<String> as *mut c_void;
            check(unsafe { tnk_gateway_keys(gateway, Some(on_line), user) }, "list of keys")?;
            Ok(lines)
        })
    }

    /// Set the reward of the latest response of a session.
    pub fn reward(&self, session: &str, reward: f64) -> Result<()> {
        let session = c_string("the session", session)?;
        self.call(move |gateway| {
            let none = std::ptr::null();
            let err = unsafe { tnk_gateway_reward(gateway, session.as_ptr(), none, 0, reward) };
            check(err, "response or reward")
        })
    }

    /// Set the reward of a response by its id, as its client received it, and the index of its
    /// choice.
    pub fn reward_response(&self, id: &str, choice: u32, reward: f64) -> Result<()> {
        let id = c_string("the id", id)?;
        self.call(move |gateway| {
            let none = std::ptr::null();
            let err = unsafe { tnk_gateway_reward(gateway, none, id.as_ptr(), choice, reward) };
            check(err, "response or reward")
        })
    }

    /// The record as training examples, each a JSON object: those of one session, or of all; with
    /// `rewarded` only those with a reward. The thread of the library reads them meanwhile.
    pub fn datums(&self, session: Option<&str>, rewarded: bool) -> Result<Vec<String>> {
        let session = session.map(|name| c_string("the session", name)).transpose()?;
        self.call(move |gateway| {
            let mut lines: Vec<String> = Vec::new();
            let user = &mut lines as *mut Vec<String> as *mut c_void;
            let err = unsafe {
                let (name, rewarded) = (pointer(&session), c_int::from(rewarded));
                tnk_gateway_datums(gateway, name, rewarded, Some(on_line), user)
            };
            check(err, "session")?;
            Ok(lines)
        })
    }

    /// The counters.
    pub fn stats(&self) -> Result<GatewayStats> {
        self.call(|gateway| {
            let mut found: tnk_gateway_stats_t = unsafe { zeroed() };
            found.size = size_of_val(&found);
            Code::check(unsafe { tnk_gateway_stats(&mut found, gateway) })?;
            Ok(GatewayStats {
                n_requests: found.n_requests,
                n_answered: found.n_answered,
                n_failed: found.n_failed,
                n_tokens: found.n_tokens,
                n_under_way: found.n_under_way,
                n_connections: found.n_connections,
                version: found.version,
            })
        })
    }

    /// Tell load balancers that this gateway will end. All requests are served as before.
    pub fn leave(&self) -> Result<()> {
        self.call(|gateway| {
            unsafe { tnk_gateway_leave(gateway) };
            Ok(())
        })
    }

    /// Accept no more connections, and finish the requests in progress. Then `n_connections` of
    /// [`stats`](Gateway::stats) is 0.
    pub fn drain(&self) -> Result<()> {
        self.call(|gateway| {
            unsafe { tnk_gateway_drain(gateway) };
            Ok(())
        })
    }

    /// Close the gateway: it closes connections and cancels samples in progress. All answered
    /// turns are on the disk when the operation ends. Dropping the operation does not stop it.
    pub fn close(&self) -> Operation<()> {
        let gate = self.handle.gate.clone();
        let engine = gate.engine().clone();
        let keep = gate.service.lease.clone();
        Operation::begin(&engine, keep, move |on, waiting| gate.end(on, Some(waiting)))
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address()).finish()
    }
}

/// Memory for a key, which is wiped.
struct Secret([c_char; KEY_SIZE]);

impl Secret {
    fn new() -> Secret {
        Secret([0; KEY_SIZE])
    }

    fn text(&self) -> String {
        unsafe { string(self.0.as_ptr()) }.unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        for byte in &mut self.0 {
            // Volatile, so that the compiler keeps it.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
    }
}
