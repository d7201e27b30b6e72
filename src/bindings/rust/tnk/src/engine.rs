// SPDX-License-Identifier: MIT
//! The threads of the library: the runtime's, which runs the operations, and one that takes
//! their results.
//!
//! All services of a process share an engine while one of them exists. The runtime's thread
//! never runs code of the program: wakers run on the thread that takes results.
use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::os::raw::{c_int, c_void};
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::{mpsc, Arc, Condvar, Mutex, MutexGuard, Once, Weak};
use std::thread::{self, JoinHandle, ThreadId};

use tnk_sys::*;

use crate::custom::is_loss_thread;
use crate::error::{Code, Error, Result};
use crate::observe::Observers;

/// The number of promises that the queue may hold: as many as a service.
const MAX_HELD: usize = 1_048_576;
const BATCH: usize = 256;

// Of the C library. The crate `libc` needs a newer compiler than Debian 12 has.
#[repr(C)]
struct Descriptor {
    fd: c_int,
    events: i16,
    revents: i16,
}
const POLLIN: i16 = 1;
#[cfg(any(target_os = "linux", target_os = "android"))]
type Count = std::os::raw::c_ulong;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
type Count = std::os::raw::c_uint;
extern "C" {
    fn poll(fds: *mut Descriptor, n: Count, timeout_ms: c_int) -> c_int;
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Data under a lock of this crate stays valid if a thread panics.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// A pointer that other threads may hold; each use says why it is right.
pub(crate) struct Raw<T>(pub *mut T);
unsafe impl<T> Send for Raw<T> {}
unsafe impl<T> Sync for Raw<T> {}
impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Raw<T> {}

/// Proves that the code runs on the runtime's thread.
pub(crate) struct Loop<'a> {
    pub engine: &'a Engine,
    pub uv: *mut uv_loop_t,
    _own_thread: PhantomData<*mut ()>,
}

/// A value that only the runtime's thread uses.
pub(crate) struct LoopCell<T>(Cell<T>);
// A `Loop` is needed to reach the cell, and it does not leave its thread.
unsafe impl<T: Send> Sync for LoopCell<T> {}
impl<T> LoopCell<T> {
    pub fn new(value: T) -> Self {
        LoopCell(Cell::new(value))
    }
    pub fn of(&self, _: &Loop) -> &Cell<T> {
        &self.0
    }
    pub fn into_inner(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

type Function = Box<dyn FnOnce(&Loop) + Send>;

/// What the runtime's thread has to do.
enum Job {
    Run(Function),
    Release(Raw<tnk_promise_t>),
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Open,
    Stopping,
    Stopped,
}

/// An object that closes before its service does.
pub(crate) trait Guest: Send + Sync {
    /// The address of its service.
    fn host(&self) -> *const c_void;
    fn close(self: Arc<Self>, on: &Loop);
}

/// Loss functions of the program that run, for which the runtime waits at its end.
#[derive(Default)]
struct Losses {
    n_running: usize,
    is_closing: bool,
}

struct Pending {
    jobs: Vec<Job>,
    /// False with jobs in the list: there was no memory, and the next post tries again.
    is_posted: bool,
    phase: Phase,
    is_queue_freed: bool,
}

/// Receives a promise that has settled, on the thread that takes results.
pub(crate) trait Complete: Send + Sync {
    fn complete(&self, promise: Promise, status: i64);
}

pub(crate) struct Engine {
    runtime: *mut tnk_runtime_t,
    queue: *mut tnk_queue_t,
    pid: u32,
    pending: Mutex<Pending>,
    losses: Mutex<Losses>,
    loss_ended: Condvar,
    guests: Mutex<Vec<Arc<dyn Guest>>>,
    guests_left: Condvar,
    /// Held while the runtime stops.
    stop: Mutex<()>,
    /// For the thread that takes results. `poke` wakes it.
    extras: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    poke: UnixStream,
    poked: UnixStream,
    /// Functions of the program, until their services have closed.
    observers: Mutex<Vec<Arc<Observers>>>,
    taker: Mutex<Option<JoinHandle<()>>>,
    taker_id: Mutex<Option<ThreadId>>,
}
// The runtime and the queue may be used on any thread, as their functions say.
unsafe impl Send for Engine {}
unsafe impl Sync for Engine {}

/// The engines whose threads run, for the end of the process.
static LIVE: Mutex<Vec<Arc<Engine>>> = Mutex::new(Vec::new());
static CURRENT: Mutex<Option<Weak<Lease>>> = Mutex::new(None);
static AT_EXIT: Once = Once::new();

/// A settled promise, or one that returned a handle. Released by the runtime's thread.
pub(crate) struct Promise {
    engine: Arc<Engine>,
    raw: *mut tnk_promise_t,
}
// Its accessors may be used on any thread, or take a `Loop`.
unsafe impl Send for Promise {}
unsafe impl Sync for Promise {}
impl Promise {
    pub fn raw(&self) -> *mut tnk_promise_t {
        self.raw
    }
}
impl Drop for Promise {
    fn drop(&mut self) {
        self.engine.release(Raw(self.raw));
    }
}

/// Keeps an engine running. The last one ends it, without waiting.
pub(crate) struct Lease {
    pub engine: Arc<Engine>,
}
impl Drop for Lease {
    fn drop(&mut self) {
        let pending = lock(&self.engine.pending);
        if !pending.is_queue_freed {
            unsafe { tnk_queue_close(self.engine.queue) };
        }
    }
}

impl Lease {
    /// The engine of the process, which begins with the first service.
    pub fn get() -> Result<Arc<Lease>> {
        let mut current = lock(&CURRENT);
        if let Some(lease) = current.as_ref().and_then(Weak::upgrade) {
            // A child process begins anew, and leaves what its parent had.
            if lease.engine.pid == std::process::id() {
                return Ok(lease);
            }
            std::mem::forget(lease);
        }
        let lease = Arc::new(Lease { engine: Engine::open()? });
        *current = Some(Arc::downgrade(&lease));
        Ok(lease)
    }
}

impl Engine {
    fn open() -> Result<Arc<Engine>> {
        let system = |_| Error::from_code(Code::ESYSTEM);
        let (poke, poked) = UnixStream::pair().map_err(system)?;
        poke.set_nonblocking(true).map_err(system)?;
        poked.set_nonblocking(true).map_err(system)?;
        let mut runtime = null_mut();
        Code::check(unsafe { tnk_runtime_start(&mut runtime) })?;
        let mut queue = null_mut();
        let err = unsafe { tnk_queue_new(&mut queue, runtime, MAX_HELD) };
        if err != 0 {
            unsafe { tnk_runtime_stop(runtime) };
            return Err(Error::from_code(Code(err)));
        }
        let pending = Pending {
            jobs: Vec::new(),
            is_posted: false,
            phase: Phase::Open,
            is_queue_freed: false,
        };
        let engine = Arc::new(Engine {
            runtime,
            queue,
            pid: std::process::id(),
            pending: Mutex::new(pending),
            losses: Mutex::new(Losses::default()),
            loss_ended: Condvar::new(),
            guests: Mutex::new(Vec::new()),
            guests_left: Condvar::new(),
            stop: Mutex::new(()),
            extras: Mutex::new(Vec::new()),
            poke,
            poked,
            observers: Mutex::new(Vec::new()),
            taker: Mutex::new(None),
            taker_id: Mutex::new(None),
        });
        let own = engine.clone();
        let made =
            thread::Builder::new().name("tnk results".into()).spawn(move || own.take_results());
        match made {
            Ok(taker) => {
                *lock(&engine.taker_id) = Some(taker.thread().id());
                *lock(&engine.taker) = Some(taker);
                // A thread that has ended already is not found there.
                lock(&LIVE).push(engine.clone());
                AT_EXIT.call_once(|| unsafe {
                    atexit(at_exit);
                });
                Ok(engine)
            }
            Err(_) => {
                engine.end();
                Err(Error::from_code(Code::ESYSTEM))
            }
        }
    }

    // ---- To the runtime's thread ----

    fn wake_runtime(&self, pending: &mut Pending) -> c_int {
        if pending.is_posted {
            return 0;
        }
        let user = self as *const Engine as *mut c_void;
        let err = unsafe { tnk_runtime_post(self.runtime, Some(run_pending), user) };
        pending.is_posted = err == 0;
        err
    }

    /// Run a function on the runtime's thread, after those of earlier calls.
    pub fn post(&self, function: Function) -> std::result::Result<(), Code> {
        self.append(Job::Run(function), false)
    }

    /// The same, but without memory it waits for the next function that has some.
    pub fn must_post(&self, function: Function) {
        let _ = self.append(Job::Run(function), true);
    }

    /// The same, for a function that the program waits for: without memory this tries again.
    pub fn post_or_wait(&self, function: Function) {
        self.must_post(function);
        while self.is_stuck() {
            thread::yield_now();
        }
    }

    /// Whether functions wait for memory.
    fn is_stuck(&self) -> bool {
        let mut pending = lock(&self.pending);
        pending.phase == Phase::Open
            && !pending.jobs.is_empty()
            && self.wake_runtime(&mut pending) == TNK_ENOMEM
    }

    fn append(&self, job: Job, must_run: bool) -> std::result::Result<(), Code> {
        let refused;
        let mut err = Code::EFORKED;
        if self.pid == std::process::id() {
            let mut pending = lock(&self.pending);
            if pending.phase == Phase::Open {
                pending.jobs.push(job);
                err = Code(self.wake_runtime(&mut pending));
                if err.0 == 0 || must_run {
                    return Ok(());
                }
                refused = pending.jobs.pop();
            } else {
                err = Code::ECLOSED;
                refused = Some(job);
            }
        } else {
            refused = Some(job);
        }
        // Its captures may come back here, so the lock is not held any more.
        drop(refused);
        Err(err)
    }

    fn release(&self, promise: Raw<tnk_promise_t>) {
        if self.pid != std::process::id() {
            return;
        }
        let mut pending = lock(&self.pending);
        match pending.phase {
            // The lock makes it one thread at a time.
            Phase::Stopped => unsafe { tnk_promise_unref(promise.0) },
            Phase::Stopping => pending.jobs.push(Job::Release(promise)),
            Phase::Open => {
                pending.jobs.push(Job::Release(promise));
                self.wake_runtime(&mut pending);
            }
        }
    }

    /// Run a function on the runtime's thread and wait for its result.
    pub fn call<R: Send + 'static>(
        &self,
        function: impl FnOnce(&Loop) -> R + Send + 'static,
    ) -> Result<R> {
        let (send, receive) = mpsc::sync_channel(1);
        self.post(Box::new(move |on: &Loop| {
            let _ = send.send(function(on));
        }))
        .map_err(Error::from_code)?;
        // The channel ends without a result if the runtime stops first.
        receive.recv().map_err(|_| Error::from_code(Code::ECLOSED))
    }

    /// Start an operation. `function` ends with a NUL; its promise goes to `receiver`.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    pub unsafe fn start(
        &self,
        function: &'static str,
        args: &[tnk_value_t],
        receiver: Arc<dyn Complete>,
        _: &Loop,
    ) -> (c_int, *mut tnk_promise_t) {
        debug_assert!(function.ends_with('\0'));
        let tag = Box::into_raw(Box::new(receiver));
        let mut call: tnk_call_t = unsafe { std::mem::zeroed() };
        call.function = function.as_ptr().cast();
        call.n_args = args.len() as u32;
        call.args[..args.len()].copy_from_slice(args);
        call.is_watched = 1;
        call.tag = tag as usize as u64;
        let err = unsafe { tnk_queue_call(self.queue, &mut call, 1) };
        if err != 0 {
            drop(unsafe { Box::from_raw(tag) });
        }
        (err, unsafe { call.result.pointer }.cast())
    }

    /// Take the result of a promise. One reference goes to the queue if that succeeds.
    ///
    /// # Safety
    /// A promise of a service of this engine.
    #[cfg(feature = "gateway")]
    pub unsafe fn watch(
        &self,
        promise: *mut tnk_promise_t,
        receiver: Arc<dyn Complete>,
        _: &Loop,
    ) -> c_int {
        let tag = Box::into_raw(Box::new(receiver));
        let err = unsafe { tnk_queue_watch(self.queue, promise, tag as usize as u64) };
        if err != 0 {
            drop(unsafe { Box::from_raw(tag) });
        }
        err
    }

    // ---- On the thread that takes results ----

    /// Run a function there.
    pub fn later(&self, function: Box<dyn FnOnce() + Send>) {
        let mut extras = lock(&self.extras);
        extras.push(function);
        if extras.len() == 1 {
            // A full socket has bytes to read already.
            let _ = (&self.poke).write(&[0]);
        }
    }

    /// Keep the observers of a service that opens.
    pub fn keep(&self, observers: &Arc<Observers>) {
        lock(&self.observers).push(observers.clone());
    }

    /// Their service has closed. What the program's functions own is dropped on the thread that
    /// takes results too, after the last call of them.
    pub fn forget(&self, observers: Arc<Observers>) {
        lock(&self.observers).retain(|one| !Arc::ptr_eq(one, &observers));
        self.later(Box::new(move || drop(observers)));
    }

    pub fn is_taker(&self) -> bool {
        *lock(&self.taker_id) == Some(thread::current().id())
    }

    fn run_extras(&self) {
        let mut bytes = [0; 16];
        while match (&self.poked).read(&mut bytes) {
            Ok(n) => n > 0,
            Err(error) => error.kind() == ErrorKind::Interrupted,
        } {}
        let extras = std::mem::take(&mut *lock(&self.extras));
        for function in extras {
            guarded(function);
        }
    }

    fn wait(&self) {
        let fd = |fd| Descriptor { fd, events: POLLIN, revents: 0 };
        let mut fds = [fd(unsafe { tnk_queue_fd(self.queue) }), fd(self.poked.as_raw_fd())];
        unsafe { poll(fds.as_mut_ptr(), 2, -1) };
    }

    fn take_results(self: Arc<Self>) {
        let mut done: Vec<tnk_completion_t> = Vec::with_capacity(BATCH);
        loop {
            self.wait();
            self.run_extras();
            let n = unsafe { tnk_queue_take(self.queue, done.as_mut_ptr(), BATCH, 0) };
            if n == TNK_ECLOSED {
                break;
            }
            if n > 0 {
                unsafe { done.set_len(n as usize) };
            }
            for one in done.drain(..) {
                // The box that `start` made. It is returned once.
                let receiver = unsafe { Box::from_raw(one.tag as usize as *mut Arc<dyn Complete>) };
                let promise = Promise { engine: self.clone(), raw: one.promise };
                guarded(move || receiver.complete(promise, one.status));
            }
        }
        self.end();
        lock(&LIVE).retain(|one| !Arc::ptr_eq(one, &self));
    }

    /// Count a loss function that begins. False at the end, when none may begin.
    pub fn begin_loss(&self) -> bool {
        let mut losses = lock(&self.losses);
        losses.n_running += usize::from(!losses.is_closing);
        !losses.is_closing
    }

    pub fn end_loss(&self) {
        lock(&self.losses).n_running -= 1;
        self.loss_ended.notify_all();
    }

    /// A runtime that stops takes no results of loss functions, and would wait for them.
    fn end_losses(&self) {
        let mut losses = lock(&self.losses);
        losses.is_closing = true;
        while losses.n_running > 0 {
            losses = self.loss_ended.wait(losses).unwrap_or_else(|error| error.into_inner());
        }
    }

    #[cfg(feature = "gateway")]
    pub fn guest_came(&self, _: &Loop, guest: Arc<dyn Guest>) {
        lock(&self.guests).push(guest);
    }

    #[cfg(feature = "gateway")]
    pub fn guest_left(&self, _: &Loop, guest: &Arc<dyn Guest>) {
        let address = |one: &Arc<dyn Guest>| Arc::as_ptr(one) as *const c_void;
        lock(&self.guests).retain(|one| address(one) != address(guest));
        self.guests_left.notify_all();
    }

    /// The guests of the service at that address.
    pub fn guests_of(&self, _: &Loop, host: *const c_void) -> Vec<Arc<dyn Guest>> {
        lock(&self.guests).iter().filter(|one| one.host() == host).cloned().collect()
    }

    /// What the program has left open closes before its services, which the runtime closes.
    fn end_guests(&self) {
        if lock(&self.guests).is_empty() {
            return;
        }
        // Nothing else will be posted that it could wait for.
        self.post_or_wait(Box::new(|on: &Loop| {
            let guests = lock(&on.engine.guests).clone();
            for guest in guests {
                guest.close(on);
            }
        }));
        let mut guests = lock(&self.guests);
        while !guests.is_empty() {
            guests = self.guests_left.wait(guests).unwrap_or_else(|error| error.into_inner());
        }
    }

    /// Stop the runtime. It closes what is open, and returns when its thread has ended.
    fn stop_runtime(&self) {
        self.end_losses();
        self.end_guests();
        let _stopping = lock(&self.stop);
        if lock(&self.pending).phase == Phase::Stopped {
            return;
        }
        lock(&self.pending).phase = Phase::Stopping;
        unsafe { tnk_runtime_stop(self.runtime) };
        let left = {
            let mut pending = lock(&self.pending);
            pending.phase = Phase::Stopped;
            std::mem::take(&mut pending.jobs)
        };
        // Of services that nobody has closed.
        let observers = std::mem::take(&mut *lock(&self.observers));
        if !observers.is_empty() {
            self.later(Box::new(move || drop(observers)));
        }
        for job in left {
            match job {
                Job::Release(promise) => self.release(promise),
                // Dropping it tells its operation.
                Job::Run(function) => drop(function),
            }
        }
    }

    fn end(&self) {
        self.stop_runtime();
        self.run_extras();
        let mut pending = lock(&self.pending);
        unsafe { tnk_queue_free(self.queue) };
        pending.is_queue_freed = true;
    }
}

/// Run code of the program, such as a waker. If it panics, the panic has been printed.
fn guarded(function: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(function));
}

extern "C" fn run_pending(uv: *mut uv_loop_t, user: *mut c_void) {
    // The engine exists until the runtime has stopped.
    let engine = unsafe { &*(user as *const Engine) };
    let on = Loop { engine, uv, _own_thread: PhantomData };
    let jobs = {
        let mut pending = lock(&engine.pending);
        pending.is_posted = false;
        std::mem::take(&mut pending.jobs)
    };
    // A panic must not reach C.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        for job in jobs {
            match job {
                Job::Run(function) => function(&on),
                Job::Release(promise) => unsafe { tnk_promise_unref(promise.0) },
            }
        }
    }));
    if ran.is_err() {
        std::process::abort();
    }
}

/// The `Loop` of a callback of the library.
///
/// # Safety
/// Only on the runtime's thread.
pub(crate) unsafe fn loop_of(engine: &Engine) -> Loop<'_> {
    Loop { engine, uv: null_mut(), _own_thread: PhantomData }
}

/// Before the libraries of the process end, the threads that use them do.
extern "C" fn at_exit() {
    let engines = lock(&LIVE).clone();
    for engine in engines {
        // A loss function that ends the process cannot end before it.
        if engine.pid != std::process::id() || is_loss_thread() {
            continue;
        }
        engine.stop_runtime();
        if !engine.is_taker() {
            let taker = lock(&engine.taker).take();
            if let Some(taker) = taker {
                let _ = taker.join();
            }
        }
    }
}
