// SPDX-License-Identifier: MIT
//! Functions of the program that are called when a service reports something.
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tnk_sys::*;

use crate::engine::Engine;
use crate::error::string;

/// The number of log lines that may wait for a function.
const MAX_LINES: usize = 1_000;

/// Why operations of a client wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueState {
    /// A state that this version does not know.
    Unknown,
    /// They do not wait any more.
    Active,
    /// The service has no capacity.
    PausedCapacity,
    /// The rate limit of the service.
    PausedRateLimit,
    /// No pending operation was accepted or has ended for 60 s, then for 120 s and so on.
    Stalled,
    /// The server has ended the session, or no longer knows it. Operations that it rejects from
    /// now on fail with [`Code::ESESSION`](crate::Code::ESESSION).
    SessionLost,
    /// The server does not respond. Operations wait and continue by themselves.
    Unreachable,
    /// The server may have lost the weights. Operations of the client fail with
    /// [`Code::ESESSION`](crate::Code::ESESSION) until
    /// [`Training::go_on`](crate::Training::go_on) is called. With the option `recovery` the
    /// client is restored instead.
    MemoryLost,
}

/// A change of the state of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueEvent {
    /// The id of the client or the session, the name of an operation without a client, or the
    /// host of the server.
    pub client: String,
    /// Why operations wait.
    pub state: QueueState,
    /// One sentence of the server or of the library.
    pub reason: String,
}

/// The state of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecoveryState {
    /// The server has lost it. The first attempt follows.
    Detected,
    /// An attempt begins.
    Started,
    /// It exists again, under another id.
    Completed,
    /// An attempt has failed. The next one follows.
    Failed,
    /// The last attempt has failed. The client stays lost.
    Exhausted,
}

/// What a recovery restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recovered {
    /// The session of the service.
    Session,
    /// A training client.
    Training,
    /// A sampling client.
    Sampling,
}

/// A step in the recovery of a session or a client. The session comes first, then its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryEvent {
    /// Where the recovery is.
    pub state: RecoveryState,
    /// The attempt: the first is 1, and 0 means none yet.
    pub attempt: u32,
    /// What is restored.
    pub what: Recovered,
    /// The id of the client or the session.
    pub client: String,
    /// The state or the weights that are restored. None for a session, for a sampler of a base
    /// model, and for a model that was never saved and begins again at step 0.
    pub path: Option<String>,
    /// The number of optimizer steps in `path`.
    pub n_steps: u64,
    /// The time until the next attempt.
    pub retry: Duration,
    /// Why an attempt failed.
    pub reason: Option<String>,
}

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// A line of the log. It never contains a credential, a prompt or a body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// Its severity.
    pub level: LogLevel,
    /// The part of the library that logs, such as "http".
    pub subject: String,
    /// The line, without a newline.
    pub message: String,
}

type Call<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// The functions of a service.
#[derive(Clone, Default)]
pub(crate) struct Functions {
    pub queue_state: Option<Call<QueueEvent>>,
    pub recovery: Option<Call<RecoveryEvent>>,
    pub log: Option<(LogLevel, Call<LogLine>)>,
}

/// Log lines that have not been passed on.
#[derive(Default)]
struct Lines {
    waiting: AtomicUsize,
    lost: AtomicUsize,
}

/// What the callbacks of the library reach. The engine keeps it until the service has closed.
pub(crate) struct Observers {
    engine: Weak<Engine>,
    functions: Functions,
    lines: Arc<Lines>,
}

impl Observers {
    /// None without functions.
    pub fn new(engine: &Arc<Engine>, functions: Functions) -> Option<Arc<Observers>> {
        if functions.queue_state.is_none()
            && functions.recovery.is_none()
            && functions.log.is_none()
        {
            return None;
        }
        let engine = Arc::downgrade(engine);
        Some(Arc::new(Observers { engine, functions, lines: Arc::default() }))
    }

    /// Set the callbacks. `logger` and this must outlive their use.
    pub fn set(&self, options: &mut tnk_service_options_t, logger: &mut tnk_logger_t) {
        let user = self as *const Observers as *mut c_void;
        if self.functions.queue_state.is_some() {
            options.on_queue_state = Some(on_queue_state);
            options.queue_state_user = user;
        }
        if self.functions.recovery.is_some() {
            options.on_recovery = Some(on_recovery);
            options.recovery_user = user;
        }
        if let Some((level, _)) = &self.functions.log {
            logger.level = match level {
                LogLevel::Error => TNK_LOG_ERROR,
                LogLevel::Warn => TNK_LOG_WARN,
                LogLevel::Info => TNK_LOG_INFO,
                LogLevel::Debug => TNK_LOG_DEBUG,
                LogLevel::Trace => TNK_LOG_TRACE,
            };
            logger.write = Some(on_log);
            logger.user = user;
            options.logger = logger;
        }
    }

    /// After the service has closed, or was not opened.
    pub fn release(self: Arc<Self>) {
        if let Some(engine) = self.engine.upgrade() {
            engine.forget(self);
        }
    }
}

/// Release the observers when a service has closed. `user` is a reference to them.
pub(crate) extern "C" fn on_released(user: *mut c_void) {
    let observers = unsafe { Arc::from_raw(user as *const Observers) };
    observers.release();
}

type Deliver = Box<dyn FnOnce() + Send>;

/// Call a function of the program on the thread that takes results, in the order of the
/// reports. There its panics are caught.
fn report(user: *mut c_void, make: impl FnOnce(&Observers) -> Option<Deliver>) {
    // The engine keeps it. A panic must not reach C.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let observers = unsafe { &*(user as *const Observers) };
        if let (Some(engine), Some(deliver)) = (observers.engine.upgrade(), make(observers)) {
            engine.later(deliver);
        }
    }));
}

/// A copy of a string of the library, which may be NULL.
fn text(text: *const c_char) -> String {
    unsafe { string(text) }.unwrap_or_default()
}

extern "C" fn on_queue_state(
    client: *const c_char,
    state: tnk_queue_state_t,
    reason: *const c_char,
    user: *mut c_void,
) {
    report(user, |observers| {
        let call = observers.functions.queue_state.clone()?;
        let state = match state {
            TNK_QUEUE_ACTIVE => QueueState::Active,
            TNK_QUEUE_PAUSED_CAPACITY => QueueState::PausedCapacity,
            TNK_QUEUE_PAUSED_RATE_LIMIT => QueueState::PausedRateLimit,
            TNK_QUEUE_STALLED => QueueState::Stalled,
            TNK_QUEUE_SESSION_LOST => QueueState::SessionLost,
            TNK_QUEUE_UNREACHABLE => QueueState::Unreachable,
            TNK_QUEUE_MEMORY_LOST => QueueState::MemoryLost,
            _ => QueueState::Unknown,
        };
        let event = QueueEvent { client: text(client), state, reason: text(reason) };
        Some(Box::new(move || call(&event)))
    });
}

extern "C" fn on_recovery(event: *const tnk_recovery_event_t, user: *mut c_void) {
    report(user, |observers| {
        let call = observers.functions.recovery.clone()?;
        let event = unsafe { &*event };
        let state = match event.state {
            TNK_RECOVERY_DETECTED => RecoveryState::Detected,
            TNK_RECOVERY_STARTED => RecoveryState::Started,
            TNK_RECOVERY_COMPLETED => RecoveryState::Completed,
            TNK_RECOVERY_FAILED => RecoveryState::Failed,
            _ => RecoveryState::Exhausted,
        };
        let what = if !event.training.is_null() {
            Recovered::Training
        } else if !event.sampling.is_null() {
            Recovered::Sampling
        } else {
            Recovered::Session
        };
        let event = RecoveryEvent {
            state,
            attempt: event.attempt,
            what,
            client: text(event.client),
            path: unsafe { string(event.path) },
            n_steps: event.n_steps,
            retry: Duration::from_millis(event.retry_ms),
            reason: unsafe { string(event.reason) },
        };
        Some(Box::new(move || call(&event)))
    });
}

extern "C" fn on_log(
    level: tnk_log_level_t,
    subject: *const c_char,
    message: *const c_char,
    _length: usize,
    user: *mut c_void,
) {
    report(user, |observers| {
        let call = observers.functions.log.as_ref()?.1.clone();
        let lines = observers.lines.clone();
        // Only this thread adds lines.
        if lines.waiting.load(Ordering::Relaxed) >= MAX_LINES {
            lines.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        lines.waiting.fetch_add(1, Ordering::Relaxed);
        let level = match level {
            TNK_LOG_ERROR => LogLevel::Error,
            TNK_LOG_WARN => LogLevel::Warn,
            TNK_LOG_INFO => LogLevel::Info,
            TNK_LOG_DEBUG => LogLevel::Debug,
            _ => LogLevel::Trace,
        };
        let line = LogLine { level, subject: text(subject), message: text(message) };
        Some(Box::new(move || {
            lines.waiting.fetch_sub(1, Ordering::Relaxed);
            let lost = lines.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let message = format!("{} lines were dropped: the function is too slow", lost);
                call(&LogLine { level: LogLevel::Warn, subject: "log".into(), message });
            }
            call(&line);
        }))
    });
}
