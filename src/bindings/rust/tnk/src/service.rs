// SPDX-License-Identifier: MIT
//! Services, and the options of what they create.
use std::cell::Cell;
use std::ffi::CString;
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Weak};

use tnk_sys::*;

use crate::engine::{loop_of, Lease, Loop, LoopCell, Promise, Raw};
use crate::error::{string, Code, Error, Result};
use crate::observe::{
    on_released, Functions, LogLevel, LogLine, Observers, QueueEvent, RecoveryEvent,
};
use crate::operation::{Keep, Operation, Shared, Starter};
use crate::result::{read_checkpoints, read_models, Checkpoint, Model};
use crate::sampling::Sampling;
use crate::text::{at, c_string, choice, init, optional, pointer, setters, Pairs};
use crate::training::Training;

/// Where a service is in its life, on the runtime's thread.
pub(crate) enum Life {
    Open(Raw<tnk_service_t>),
    /// With the operations that wait for the end.
    Closing(Vec<Arc<Shared<()>>>),
    Closed,
}
impl Default for Life {
    fn default() -> Self {
        Life::Closed
    }
}

pub(crate) struct ServiceInner {
    life: LoopCell<Life>,
    /// The handle of one that waits for the end of its guests.
    held: LoopCell<Option<Raw<tnk_service_t>>>,
    observers: Weak<Observers>,
    pub lease: Arc<Lease>,
}

impl ServiceInner {
    /// The handle, unless it was closed.
    pub fn handle(&self, on: &Loop) -> Option<*mut tnk_service_t> {
        let life: &Cell<Life> = self.life.of(on);
        let now = life.take();
        let found = match &now {
            Life::Open(handle) => Some(handle.0),
            _ => None,
        };
        life.set(now);
        found
    }

    fn close(self: &Arc<Self>, on: &Loop, waiting: Arc<Shared<()>>) {
        let life = self.life.of(on);
        match life.take() {
            Life::Open(handle) => {
                life.set(Life::Closing(vec![waiting]));
                self.held.of(on).set(Some(handle));
                for guest in on.engine.guests_of(on, Arc::as_ptr(self).cast()) {
                    guest.close(on);
                }
                self.close_if_empty(on);
            }
            Life::Closing(mut all) => {
                all.push(waiting);
                life.set(Life::Closing(all));
            }
            Life::Closed => waiting.finish_later(Ok(())),
        }
    }
}

impl ServiceInner {
    /// Close a service that waits for the end of its guests, if there are none.
    pub fn close_if_empty(self: &Arc<Self>, on: &Loop) {
        if on.engine.guests_of(on, Arc::as_ptr(self).cast()).is_empty() {
            if let Some(handle) = self.held.of(on).take() {
                let user = Arc::into_raw(self.clone()) as *mut c_void;
                unsafe { tnk_service_close(handle.0, Some(on_closed), user) };
            }
        }
    }
}

extern "C" fn on_closed(user: *mut c_void) {
    // The reference of `close`.
    let service = unsafe { Arc::from_raw(user as *const ServiceInner) };
    let lease = service.lease.clone();
    let on = unsafe { loop_of(&lease.engine) };
    // Before the end of `close`, so that it sees no call of them.
    if let Some(observers) = service.observers.upgrade() {
        observers.release();
    }
    if let Life::Closing(all) = service.life.of(&on).replace(Life::Closed) {
        for one in all {
            one.finish_later(Ok(()));
        }
    }
}

impl Drop for ServiceInner {
    fn drop(&mut self) {
        if let Life::Open(handle) = *self.life.into_inner() {
            // Nobody else has the handle, so it stays open until this runs.
            let observers = self.observers.clone();
            self.lease.engine.must_post(Box::new(move |_: &Loop| {
                let handle = handle;
                match observers.upgrade() {
                    Some(observers) => {
                        let user = Arc::into_raw(observers) as *mut c_void;
                        unsafe { tnk_service_close(handle.0, Some(on_released), user) };
                    }
                    None => unsafe { tnk_service_close(handle.0, None, null_mut()) },
                }
            }));
        }
    }
}

/// Options of a service. What is not set comes from the environment, see `tnk/service.h`.
#[derive(Clone, Default)]
pub struct ServiceOptions {
    api_key: Option<String>,
    base_url: Option<String>,
    project_id: Option<String>,
    tags: Option<String>,
    ca_file: Option<String>,
    proxy: Option<String>,
    dump_file: Option<String>,
    credential_cmd: Option<String>,
    headers: Vec<(String, String)>,
    recovery: Option<bool>,
    timeout_ms: u64,
    patience_ms: u64,
    max_pending: u32,
    recovery_attempts: u32,
    recovery_delay_ms: u64,
    functions: Functions,
}

impl ServiceOptions {
    setters! {
        /// The API key, in place of TINKER_API_KEY.
        api_key: &str;
        /// The server, in place of TINKER_BASE_URL.
        base_url: &str;
        /// The project, in place of TINKER_PROJECT_ID.
        project_id: &str;
        /// Tags of the session, separated by commas.
        tags: &str;
        /// A PEM file of trusted certificates.
        ca_file: &str;
        /// A proxy for all requests.
        proxy: &str;
        /// A file for the dump of the service, which `tnk top` displays.
        dump_file: &str;
        /// A command that prints a credential.
        credential_cmd: &str;
        /// Whether clients are restored after the server has lost them.
        recovery: bool;
        /// Idle timeout of one request, in milliseconds.
        timeout_ms: u64 => std::convert::identity;
        /// How long a failed request is retried, in milliseconds.
        patience_ms: u64 => std::convert::identity;
        /// Maximum number of operations that are queued or running.
        max_pending: u32 => std::convert::identity;
        /// Attempts to restore each client; 0 means 3.
        recovery_attempts: u32 => std::convert::identity;
        /// The pause before the second attempt in milliseconds, then doubled; 0 means 5,000.
        recovery_delay_ms: u64 => std::convert::identity;
    }

    /// Call a function when operations wait at the service, or when they cannot reach it.
    ///
    /// Functions of a service are called on the thread that takes results, in the order of the
    /// reports: never inside a call of this crate, and not after the operation of
    /// [`Service::close`] has ended. They must return soon, because results wait for them. They
    /// may call this crate, but `wait()` fails with [`Code::EREENTRANT`]. A panic is printed, and
    /// ends only that call.
    #[must_use]
    pub fn on_queue_state(
        mut self,
        function: impl Fn(&QueueEvent) + Send + Sync + 'static,
    ) -> Self {
        self.functions.queue_state = Some(Arc::new(function));
        self
    }

    /// Call a function for each step of a recovery, in the way that
    /// [`on_queue_state`](ServiceOptions::on_queue_state) describes. It needs the option
    /// `recovery`.
    #[must_use]
    pub fn on_recovery(
        mut self,
        function: impl Fn(&RecoveryEvent) + Send + Sync + 'static,
    ) -> Self {
        self.functions.recovery = Some(Arc::new(function));
        self
    }

    /// Call a function for each line of the log of that level or a more severe one, in the way
    /// that [`on_queue_state`](ServiceOptions::on_queue_state) describes. If 1,000 lines wait
    /// for it, further ones are dropped, and a line says how many.
    #[must_use]
    pub fn log(
        mut self,
        level: LogLevel,
        function: impl Fn(&LogLine) + Send + Sync + 'static,
    ) -> Self {
        self.functions.log = Some((level, Arc::new(function)));
        self
    }

    /// Add a header to each request.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Open a service. This sends nothing.
    pub fn open(self) -> Result<Service> {
        let lease = Lease::get()?;
        let texts = [
            optional("api_key", &self.api_key)?,
            optional("base_url", &self.base_url)?,
            optional("project_id", &self.project_id)?,
            optional("tags", &self.tags)?,
            optional("ca_file", &self.ca_file)?,
            optional("proxy", &self.proxy)?,
            optional("dump_file", &self.dump_file)?,
            optional("credential_cmd", &self.credential_cmd)?,
        ];
        let headers = Pairs::new("a header", &self.headers)?;
        let observers = Observers::new(&lease.engine, self.functions);
        if let Some(observers) = &observers {
            lease.engine.keep(observers);
        }
        let seen = observers.clone();
        let (recovery, timeout_ms, patience_ms) =
            (self.recovery, self.timeout_ms, self.patience_ms);
        let opened = lease.engine.call(move |on| {
            let mut logger: tnk_logger_t = unsafe { std::mem::zeroed() };
            let mut options: tnk_service_options_t = unsafe { init("tnk_service_options_t\0") };
            let mut why = [0u8; 512];
            let mut handle = null_mut();
            options.api_key = pointer(&texts[0]);
            options.base_url = pointer(&texts[1]);
            options.project_id = pointer(&texts[2]);
            options.tags = pointer(&texts[3]);
            options.ca_file = pointer(&texts[4]);
            options.proxy = pointer(&texts[5]);
            options.dump_file = pointer(&texts[6]);
            options.credential_cmd = pointer(&texts[7]);
            options.headers = headers.as_ptr();
            options.n_headers = headers.len();
            options.recovery = choice(recovery);
            options.timeout_ms = timeout_ms;
            options.patience_ms = patience_ms;
            options.max_pending = self.max_pending;
            options.recovery_attempts = self.recovery_attempts;
            options.recovery_delay_ms = self.recovery_delay_ms;
            if let Some(observers) = &seen {
                observers.set(&mut options, &mut logger);
            }
            let err = unsafe {
                tnk_service_open(&mut handle, on.uv, &options, why.as_mut_ptr().cast(), why.len())
            };
            if err == 0 {
                return Ok(Raw(handle));
            }
            Err(Error::new(Code(err), unsafe { string(why.as_ptr().cast()) }.unwrap_or_default()))
        });
        let watching = observers.as_ref().map_or_else(Weak::new, Arc::downgrade);
        let handle = match opened.and_then(|opened| opened) {
            Ok(handle) => handle,
            Err(error) => {
                if let Some(observers) = observers {
                    observers.release();
                }
                return Err(error);
            }
        };
        let life = LoopCell::new(Life::Open(handle));
        Ok(Service {
            inner: Arc::new(ServiceInner {
                life,
                held: LoopCell::new(None),
                observers: watching,
                lease,
            }),
        })
    }
}

/// Options of a new LoRA model.
#[derive(Clone, Debug, Default)]
pub struct LoraOptions {
    base_model: Option<String>,
    rank: u32,
    seed: Option<i64>,
    train_mlp: Option<bool>,
    train_attn: Option<bool>,
    train_unembed: Option<bool>,
}

impl LoraOptions {
    /// A model that is made from a base model, such as "Qwen/Qwen3-8B".
    pub fn new(base_model: &str) -> Self {
        LoraOptions { base_model: Some(base_model.into()), ..Default::default() }
    }

    setters! {
        /// The rank; 0 means 32.
        rank: u32 => std::convert::identity;
        /// The seed of its weights.
        seed: i64;
        /// Whether these layers are trained.
        train_mlp: bool;
        /// Whether these layers are trained.
        train_attn: bool;
        /// Whether these layers are trained.
        train_unembed: bool;
    }
}

/// What to sample from.
#[derive(Clone, Debug, Default)]
pub struct SamplingOptions {
    model_path: Option<String>,
    base_model: Option<String>,
    exported: Option<String>,
}

impl SamplingOptions {
    /// A base model.
    pub fn base_model(name: &str) -> Self {
        SamplingOptions { base_model: Some(name.into()), ..Default::default() }
    }
    /// Saved weights, "tinker://...".
    pub fn model_path(path: &str) -> Self {
        SamplingOptions { model_path: Some(path.into()), ..Default::default() }
    }
    /// The sampler of another client, also of another process: see [`Sampling::export`].
    pub fn exported(text: &str) -> Self {
        SamplingOptions { exported: Some(text.into()), ..Default::default() }
    }
}

/// The options of a sampling client in C.
pub(crate) struct SamplingArgs([Option<CString>; 3]);

impl SamplingArgs {
    pub fn new(options: &SamplingOptions) -> Result<SamplingArgs> {
        Ok(SamplingArgs([
            optional("model_path", &options.model_path)?,
            optional("base_model", &options.base_model)?,
            optional("exported", &options.exported)?,
        ]))
    }

    pub fn to_c(&self) -> tnk_sampling_options_t {
        let mut options: tnk_sampling_options_t = unsafe { init("tnk_sampling_options_t\0") };
        options.model_path = pointer(&self.0[0]);
        options.base_model = pointer(&self.0[1]);
        options.exported = pointer(&self.0[2]);
        options
    }
}

/// A connection to one server with one key.
///
/// A clone is the same service. It closes when [`close`](Service::close) is called, or when
/// its last clone, client, ledger and operation have been dropped. Any thread may use it:
/// it is `Send` and `Sync`.
#[derive(Clone)]
pub struct Service {
    pub(crate) inner: Arc<ServiceInner>,
}

impl Service {
    /// Open a service with the options of the environment: TINKER_BASE_URL, TINKER_API_KEY and
    /// others. This sends nothing.
    pub fn new() -> Result<Service> {
        Service::options().open()
    }

    /// Options of a service, to be opened.
    pub fn options() -> ServiceOptions {
        ServiceOptions::default()
    }

    pub(crate) fn start<T: Send + 'static>(
        &self,
        read: fn(Promise, Keep) -> Result<T>,
        begin: impl FnOnce(&Loop, &Starter<T>, *mut tnk_service_t) + Send + 'static,
    ) -> Operation<T> {
        let inner = self.inner.clone();
        Operation::start(&self.inner.lease.engine, self.inner.clone(), read, move |on, starter| {
            match inner.handle(on) {
                Some(handle) => begin(on, starter, handle),
                None => starter.fail(Code::ECLOSED),
            }
        })
    }

    pub(crate) fn failed<T: Send + 'static>(&self, error: Error) -> Operation<T> {
        Operation::failed(&self.inner.lease.engine, error)
    }

    /// Create a model to train.
    pub fn create_lora(&self, options: LoraOptions) -> Operation<Training> {
        let base_model = match optional("base_model", &options.base_model) {
            Ok(text) => text,
            Err(error) => return self.failed(error),
        };
        self.start(Training::read, move |on, starter, service| {
            let mut lora: tnk_lora_options_t = unsafe { init("tnk_lora_options_t\0") };
            lora.base_model = pointer(&base_model);
            lora.rank = options.rank;
            lora.seed = options.seed.unwrap_or(lora.seed);
            lora.train_mlp = choice(options.train_mlp);
            lora.train_attn = choice(options.train_attn);
            lora.train_unembed = choice(options.train_unembed);
            unsafe { starter.call(on, "tnk_service_create_lora\0", &[at(service), at(&lora)]) };
        })
    }

    /// Create a model from a saved state, with the moments of its optimizer or without them.
    pub fn restore(&self, path: &str, with_optimizer: bool) -> Operation<Training> {
        let path = match c_string("the path", path) {
            Ok(path) => path,
            Err(error) => return self.failed(error),
        };
        self.start(Training::read, move |on, starter, service| {
            let mut options: tnk_restore_options_t = unsafe { init("tnk_restore_options_t\0") };
            options.path = path.as_ptr();
            options.with_optimizer = choice(Some(with_optimizer));
            unsafe { starter.call(on, "tnk_service_restore\0", &[at(service), at(&options)]) };
        })
    }

    /// Create a sampling client.
    pub fn create_sampling(&self, options: SamplingOptions) -> Operation<Sampling> {
        let args = match SamplingArgs::new(&options) {
            Ok(args) => args,
            Err(error) => return self.failed(error),
        };
        self.start(Sampling::read, move |on, starter, service| {
            let options = args.to_c();
            unsafe {
                starter.call(on, "tnk_service_create_sampling\0", &[at(service), at(&options)])
            };
        })
    }

    /// List the models that the server offers.
    pub fn capabilities(&self) -> Operation<Vec<Model>> {
        self.start(
            |promise, _| Ok(read_models(&promise)),
            |on, starter, service| {
                unsafe { starter.call(on, "tnk_service_capabilities\0", &[at(service)]) };
            },
        )
    }

    /// Check whether the server is up.
    pub fn health(&self) -> Operation<()> {
        self.start(
            |_, _| Ok(()),
            |on, starter, service| {
                unsafe { starter.call(on, "tnk_service_health\0", &[at(service)]) };
            },
        )
    }

    /// List the checkpoints of a training run.
    pub fn run_checkpoints(&self, run_id: &str) -> Operation<Vec<Checkpoint>> {
        let run_id = match c_string("the id of the run", run_id) {
            Ok(text) => text,
            Err(error) => return self.failed(error),
        };
        self.start(
            |promise, _| Ok(read_checkpoints(&promise)),
            move |on, starter, service| {
                unsafe {
                    starter.call(
                        on,
                        "tnk_rest_list_run_checkpoints\0",
                        &[at(service), at(run_id.as_ptr())],
                    )
                };
            },
        )
    }

    /// Delete a checkpoint permanently.
    pub fn delete_checkpoint(&self, path: &str) -> Operation<()> {
        let path = match c_string("the path", path) {
            Ok(text) => text,
            Err(error) => return self.failed(error),
        };
        self.start(
            |_, _| Ok(()),
            move |on, starter, service| {
                unsafe {
                    starter.call(
                        on,
                        "tnk_rest_delete_checkpoint\0",
                        &[at(service), at(path.as_ptr())],
                    )
                };
            },
        )
    }

    /// The state of the service as JSON, without secrets. This call waits for the thread of the
    /// library, but for no server.
    pub fn dump(&self) -> Result<String> {
        extern "C" fn write(text: *const std::os::raw::c_char, length: usize, user: *mut c_void) {
            let bytes = unsafe { std::slice::from_raw_parts(text as *const u8, length) };
            unsafe { *(user as *mut String) = String::from_utf8_lossy(bytes).into_owned() };
        }
        let inner = self.inner.clone();
        self.inner.lease.engine.call(move |on| {
            let service = inner.handle(on).ok_or_else(|| Error::from_code(Code::ECLOSED))?;
            let mut text = String::new();
            let user = &mut text as *mut String as *mut c_void;
            Code::check(unsafe { tnk_service_dump(service, TNK_DUMP_JSON, Some(write), user) })?;
            Ok(text)
        })?
    }

    /// Close the service and its clients. Pending operations fail with [`Code::ECLOSED`], and
    /// so do later ones. The operation ends when the server knows and everything is freed,
    /// after at most two seconds. A second close waits for the same end. Dropping the operation
    /// does not stop it.
    pub fn close(&self) -> Operation<()> {
        let inner = self.inner.clone();
        Operation::begin(&self.inner.lease.engine, self.inner.lease.clone(), move |on, waiting| {
            inner.close(on, waiting)
        })
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}
