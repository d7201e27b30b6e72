// SPDX-License-Identifier: MIT
//! Ledgers: runs that resume after their process was killed.
use std::os::raw::c_void;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use tnk_sys::*;

use crate::engine::{loop_of, Loop, LoopCell, Promise};
use crate::error::{string, Code, Error, Result};
use crate::operation::{Keep, Operation, Shared, Starter};
use crate::service::{Service, ServiceInner};
use crate::text::{at, c_string, choice, init, optional, pointer, setters};
use crate::training::Training;

/// Options of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerOptions {
    run: Option<String>,
    every_steps: u64,
    every_seconds: u64,
    ttl_seconds: u64,
    n_rolling: u64,
}

impl LedgerOptions {
    /// All options have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Name of the run, with which it is found if its directory is lost.
        run: &str;
        /// Number of steps after which a save is due; 0 for no such rule.
        every_steps: u64 => std::convert::identity;
        /// Seconds after which a save is due; 0 for no such rule.
        every_seconds: u64 => std::convert::identity;
        /// Lifetime of saves; 0 keeps them.
        ttl_seconds: u64 => std::convert::identity;
        /// Number of rolling saves to keep; 0 means that saves are not rolling.
        n_rolling: u64 => std::convert::identity;
    }
}

/// Options of [`Ledger::save`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerSave {
    name: Option<String>,
    cursor: Option<String>,
    batch: u64,
    epoch: u64,
    with_sampler: Option<bool>,
    is_final: Option<bool>,
}

impl LedgerSave {
    /// All options have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Name of the checkpoint. Default: a number.
        name: &str;
        /// What the program needs to resume.
        cursor: &str;
        /// The next batch to train on; 0 means the number of steps.
        batch: u64 => std::convert::identity;
        /// The epoch.
        epoch: u64 => std::convert::identity;
        /// Also save weights for sampling.
        with_sampler: bool;
        /// The run ends with this save.
        is_final: bool;
    }
}

/// A save in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name at the service.
    pub name: String,
    /// Weights with the state of the optimizer.
    pub state_path: Option<String>,
    /// Weights for sampling.
    pub sampler_path: Option<String>,
    /// As it was passed to the save.
    pub cursor: Option<String>,
    /// The next batch to train on; None if unknown.
    pub batch: Option<u64>,
    /// Optimizer steps since the start of the run.
    pub n_steps: u64,
    /// Whether the run ended with this save.
    pub is_final: bool,
}

impl Entry {
    /// # Safety
    /// NULL, or valid during the call.
    unsafe fn read(entry: *const tnk_ledger_entry_t) -> Option<Entry> {
        let entry = unsafe { entry.as_ref() }?;
        Some(Entry {
            name: unsafe { string(entry.name) }.unwrap_or_default(),
            state_path: unsafe { string(entry.state_path) },
            sampler_path: unsafe { string(entry.sampler_path) },
            cursor: unsafe { string(entry.cursor) },
            batch: u64::try_from(entry.batch).ok(),
            n_steps: entry.n_steps,
            is_final: entry.is_final != 0,
        })
    }
}

struct LedgerInner {
    promise: Option<Promise>,
    /// The operations that wait for its end, once it closes.
    closing: LoopCell<Option<Vec<Arc<Shared<()>>>>>,
    service: Arc<ServiceInner>,
}

impl LedgerInner {
    fn handle(&self, _: &Loop) -> Option<*mut tnk_ledger_t> {
        let promise = self.promise.as_ref()?;
        Some(unsafe { tnk_promise_ledger(promise.raw()) }).filter(|handle| !handle.is_null())
    }
}

impl LedgerInner {
    fn close(self: &Arc<Self>, on: &Loop, waiting: Arc<Shared<()>>) {
        let closing = self.closing.of(on);
        if let Some(mut all) = closing.take() {
            all.push(waiting);
            closing.set(Some(all));
        } else if let Some(handle) = self.handle(on) {
            closing.set(Some(vec![waiting]));
            let user = Arc::into_raw(self.clone()) as *mut c_void;
            unsafe { tnk_ledger_close(handle, Some(on_closed), user) };
        } else {
            waiting.finish_later(Ok(()));
        }
    }
}

extern "C" fn on_closed(user: *mut c_void) {
    // The reference of `close`.
    let ledger = unsafe { Arc::from_raw(user as *const LedgerInner) };
    let lease = ledger.service.lease.clone();
    let on = unsafe { loop_of(&lease.engine) };
    for one in ledger.closing.of(&on).take().into_iter().flatten() {
        one.finish_later(Ok(()));
    }
}

impl Drop for LedgerInner {
    fn drop(&mut self) {
        if let Some(promise) = self.promise.take() {
            self.service.lease.engine.must_post(Box::new(move |_: &Loop| unsafe {
                tnk_ledger_close(tnk_promise_ledger(promise.raw()), None, null_mut());
            }));
        }
    }
}

/// The ledger of a run: a directory that records its saves.
///
/// A clone is the same ledger, which closes when its last clone and its last operation have
/// been dropped. Any thread may use it: it is `Send` and `Sync`.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<LedgerInner>,
}

impl Service {
    /// Open the ledger of a run. A run can be open only once, in any process.
    pub fn open_ledger(
        &self,
        directory: impl AsRef<Path>,
        options: LedgerOptions,
    ) -> Operation<Ledger> {
        let texts = match directory.as_ref().to_str() {
            Some(text) => c_string("the directory", text),
            None => Err(Error::new(Code::EINVAL, "the directory is not UTF-8")),
        }
        .and_then(|directory| Ok((directory, optional("run", &options.run)?)));
        let (directory, run) = match texts {
            Ok(texts) => texts,
            Err(error) => return self.failed(error),
        };
        self.start(Ledger::read, move |on, starter, service| {
            let mut ledger: tnk_ledger_options_t = unsafe { init("tnk_ledger_options_t\0") };
            ledger.run = pointer(&run);
            ledger.every_steps = options.every_steps;
            ledger.every_seconds = options.every_seconds;
            ledger.ttl_seconds = options.ttl_seconds;
            ledger.n_rolling = options.n_rolling;
            unsafe {
                starter.call(
                    on,
                    "tnk_ledger_open\0",
                    &[at(service), at(directory.as_ptr()), at(&ledger)],
                )
            };
        })
    }
}

impl Ledger {
    fn read(promise: Promise, keep: Keep) -> Result<Ledger> {
        let service =
            keep.downcast::<ServiceInner>().map_err(|_| Error::from_code(Code::EINTERNAL))?;
        Ok(Ledger {
            inner: Arc::new(LedgerInner {
                promise: Some(promise),
                closing: LoopCell::new(None),
                service,
            }),
        })
    }

    fn start<T: Send + 'static>(
        &self,
        keep: Keep,
        read: fn(Promise, Keep) -> Result<T>,
        begin: impl FnOnce(&Loop, &Starter<T>, *mut tnk_ledger_t) + Send + 'static,
    ) -> Operation<T> {
        let inner = self.inner.clone();
        let engine = &self.inner.service.lease.engine;
        Operation::start(engine, keep, read, move |on, starter| match inner.handle(on) {
            Some(handle) => begin(on, starter, handle),
            None => starter.fail(Code::ECLOSED),
        })
    }

    fn call<R: Send + 'static>(
        &self,
        function: impl FnOnce(&Loop, *mut tnk_ledger_t) -> R + Send + 'static,
    ) -> Result<R> {
        let inner = self.inner.clone();
        self.inner.service.lease.engine.call(move |on| match inner.handle(on) {
            Some(handle) => Ok(function(on, handle)),
            None => Err(Error::from_code(Code::ECLOSED)),
        })?
    }

    /// Resume the run: create a model from its last state. [`Code::ENOTFOUND`] if there is none,
    /// because the run begins.
    pub fn resume(&self) -> Operation<Training> {
        self.start(self.inner.service.clone(), Training::read, |on, starter, ledger| {
            let options: tnk_ledger_resume_t = unsafe { init("tnk_ledger_resume_t\0") };
            unsafe { starter.call(on, "tnk_ledger_resume\0", &[at(ledger), at(&options)]) };
        })
    }

    /// Save the state of a model and record it.
    pub fn save(&self, training: &Training, save: LedgerSave) -> Operation<Entry> {
        let texts = optional("the name", &save.name)
            .and_then(|name| Ok((name, optional("the cursor", &save.cursor)?)));
        let (name, cursor) = match texts {
            Ok(texts) => texts,
            Err(error) => return Operation::failed(&self.inner.service.lease.engine, error),
        };
        let training = training.inner.clone();
        let keep = Arc::new((self.inner.clone(), training.clone()));
        let read = |promise: Promise, _| {
            let entry = unsafe { Entry::read(tnk_promise_entry(promise.raw())) };
            entry.ok_or_else(|| Error::from_code(Code::EINTERNAL))
        };
        self.start(keep, read, move |on, starter, ledger| {
            let model = match training.handle(on) {
                Some(model) => model,
                None => return starter.fail(Code::ECLOSED),
            };
            let mut to: tnk_ledger_save_t = unsafe { init("tnk_ledger_save_t\0") };
            to.name = pointer(&name);
            to.cursor = pointer(&cursor);
            to.batch = save.batch;
            to.epoch = save.epoch;
            to.with_sampler = choice(save.with_sampler);
            to.is_final = choice(save.is_final);
            unsafe { starter.call(on, "tnk_ledger_save\0", &[at(ledger), at(model), at(&to)]) };
        })
    }

    /// Close the ledger, so that another program can open it. Saves in progress fail with
    /// [`Code::ECLOSED`]. The operation ends when the file is closed.
    pub fn close(&self) -> Operation<()> {
        let inner = self.inner.clone();
        let engine = &self.inner.service.lease.engine;
        Operation::begin(engine, self.inner.clone(), move |on, waiting| inner.close(on, waiting))
    }

    /// Whether a save is due. This call and those below wait for the thread of the library, but
    /// for no server.
    pub fn due(&self, training: &Training) -> Result<bool> {
        let training = training.inner.clone();
        self.call(move |on, ledger| match training.handle(on) {
            Some(model) => unsafe { tnk_ledger_due(ledger, model) != 0 },
            None => false,
        })
    }

    /// The saves in the order of the file.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.call(|_, ledger| {
            let n = unsafe { tnk_ledger_count(ledger) };
            (0..n).filter_map(|i| unsafe { Entry::read(tnk_ledger_entry(ledger, i)) }).collect()
        })
    }

    /// The save from which the run would resume.
    pub fn last(&self) -> Result<Option<Entry>> {
        self.call(|_, ledger| unsafe { Entry::read(tnk_ledger_last(ledger)) })
    }

    /// The save from which [`resume`](Ledger::resume) has resumed.
    pub fn resumed(&self) -> Result<Option<Entry>> {
        self.call(|_, ledger| unsafe { Entry::read(tnk_ledger_resumed(ledger)) })
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ledger")
    }
}
