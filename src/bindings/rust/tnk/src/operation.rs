// SPDX-License-Identifier: MIT
//! Operations: futures of the library's promises.
use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tnk_sys::*;

use crate::custom::explained;
use crate::engine::{lock, Complete, Engine, Loop, LoopCell, Promise, Raw};
use crate::error::{Code, Error, Result};

/// What an operation needs until its end, such as its client.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

enum State<T> {
    Pending { waker: Option<Waker>, keep: Option<Keep> },
    Done(Result<T>),
    Taken,
}

pub(crate) struct Shared<T> {
    engine: Arc<Engine>,
    state: Mutex<State<T>>,
    /// Set before the promise can be released, which the runtime's thread does.
    is_settled: AtomicBool,
    promise: LoopCell<Raw<tnk_promise_t>>,
    read: fn(Promise, Keep) -> Result<T>,
}

impl<T: Send + 'static> Shared<T> {
    fn new(engine: &Arc<Engine>, keep: Keep, read: fn(Promise, Keep) -> Result<T>) -> Arc<Self> {
        Arc::new(Shared {
            engine: engine.clone(),
            state: Mutex::new(State::Pending { waker: None, keep: Some(keep) }),
            is_settled: AtomicBool::new(false),
            promise: LoopCell::new(Raw(null_mut())),
            read,
        })
    }

    /// Only on the thread that takes results, or before the operation is returned.
    fn finish(&self, result: Result<T>) {
        self.is_settled.store(true, Ordering::Release);
        let kept = match &mut *lock(&self.state) {
            State::Pending { keep, .. } => keep.take(),
            _ => return,
        };
        // Whoever sees the result may count on the end of the operation.
        drop(kept);
        let before = std::mem::replace(&mut *lock(&self.state), State::Done(result));
        if let State::Pending { waker: Some(waker), .. } = before {
            waker.wake();
        }
    }

    /// From any other thread.
    pub fn finish_later(self: &Arc<Self>, result: Result<T>) {
        let shared = self.clone();
        self.engine.later(Box::new(move || shared.finish(result)));
    }

    /// The promise while it may be used.
    fn live_promise(&self, on: &Loop) -> Option<*mut tnk_promise_t> {
        let promise = self.promise.of(on).get().0;
        if promise.is_null() || self.is_settled.load(Ordering::Acquire) {
            return None;
        }
        Some(promise)
    }

    fn keep(&self) -> Option<Keep> {
        match &*lock(&self.state) {
            State::Pending { keep, .. } => keep.clone(),
            _ => None,
        }
    }
}

impl<T: Send + 'static> Complete for Shared<T> {
    fn complete(&self, promise: Promise, status: i64) {
        self.is_settled.store(true, Ordering::Release);
        let result = match self.keep() {
            keep if status != 0 => Err(explained(Error::of_promise(&promise), keep)),
            Some(keep) => (self.read)(promise, keep),
            None => return,
        };
        self.finish(result);
    }
}

/// Ends an operation whose start is dropped, because the runtime has stopped.
pub(crate) struct Starter<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    is_started: Cell<bool>,
}

impl<T: Send + 'static> Starter<T> {
    /// Call a function that returns a promise.
    ///
    /// # Safety
    /// As for [`Engine::start`].
    pub unsafe fn call(&self, on: &Loop, function: &'static str, args: &[tnk_value_t]) -> bool {
        let receiver: Arc<dyn Complete> = self.shared.clone();
        let (err, promise) = unsafe { on.engine.start(function, args, receiver, on) };
        if err != 0 {
            self.fail(Code(err));
            return !promise.is_null();
        }
        self.is_started.set(true);
        self.shared.promise.of(on).set(Raw(promise));
        true
    }

    /// Wait for a promise of the library, whose reference this takes.
    ///
    /// # Safety
    /// As for [`Engine::watch`].
    #[cfg(feature = "gateway")]
    pub unsafe fn watch(&self, on: &Loop, promise: *mut tnk_promise_t) {
        let receiver: Arc<dyn Complete> = self.shared.clone();
        let err = unsafe { on.engine.watch(promise, receiver, on) };
        if err != 0 {
            unsafe { tnk_promise_unref(promise) };
            self.fail(Code(err));
            return;
        }
        self.is_started.set(true);
        self.shared.promise.of(on).set(Raw(promise));
    }

    pub fn fail(&self, code: Code) {
        if !self.is_started.replace(true) {
            self.shared.finish_later(Err(Error::from_code(code)));
        }
    }
}

impl<T: Send + 'static> Drop for Starter<T> {
    fn drop(&mut self) {
        self.fail(Code::ECLOSED);
    }
}

/// An operation that runs, and the future of its result.
///
/// It runs from the call that returned it on, whether it is awaited or not, and operations of
/// a client reach the service in the order of the calls. It can be awaited in any executor.
/// [`wait`](Operation::wait) waits without one.
///
/// Dropping an operation cancels it. An operation that the service has accepted still runs
/// there. [`detach`](Operation::detach) lets it run to its end without a reader. Until its end
/// an operation keeps its client and its service open.
///
/// `Send` if `T` is, and `Sync`.
#[must_use = "dropping an operation cancels it; await it, or call wait() or detach()"]
pub struct Operation<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    is_detached: bool,
}

impl<T: Send + 'static> Operation<T> {
    /// Start an operation on the runtime's thread, after those of earlier calls.
    pub(crate) fn start(
        engine: &Arc<Engine>,
        keep: Keep,
        read: fn(Promise, Keep) -> Result<T>,
        begin: impl FnOnce(&Loop, &Starter<T>) + Send + 'static,
    ) -> Self {
        let shared = Shared::new(engine, keep, read);
        let starter = Starter { shared: shared.clone(), is_started: Cell::new(false) };
        let posted = engine.post(Box::new(move |on: &Loop| {
            // It is dropped on this thread, after `begin`.
            let starter = starter;
            begin(on, &starter);
        }));
        if let Err(code) = posted {
            shared.finish(Err(Error::from_code(code)));
        }
        Operation { shared, is_detached: false }
    }

    /// An operation whose arguments are not valid.
    pub(crate) fn failed(engine: &Arc<Engine>, error: Error) -> Self {
        let shared =
            Shared::new(engine, Arc::new(()), |_, _| Err(Error::from_code(Code::EINTERNAL)));
        shared.finish(Err(error));
        Operation { shared, is_detached: false }
    }

    pub(crate) fn begin(
        engine: &Arc<Engine>,
        keep: Keep,
        begin: impl FnOnce(&Loop, Arc<Shared<T>>) + Send + 'static,
    ) -> Self {
        Self::start(
            engine,
            keep,
            |_, _| Err(Error::from_code(Code::EINTERNAL)),
            move |on, starter| {
                starter.is_started.set(true);
                begin(on, starter.shared.clone());
            },
        )
    }

    /// Ask to cancel. If the operation has not ended yet, it fails with [`Code::ECANCELED`].
    pub fn cancel(&self) {
        if self.is_done() {
            return;
        }
        let shared = self.shared.clone();
        let _ = self.shared.engine.post(Box::new(move |on: &Loop| {
            if let Some(promise) = shared.live_promise(on) {
                unsafe { tnk_promise_cancel(promise) };
            }
        }));
    }

    /// Let the operation run to its end without a reader. An error is lost.
    pub fn detach(mut self) {
        self.is_detached = true;
    }

    /// Whether there is a result.
    pub fn is_done(&self) -> bool {
        !matches!(*lock(&self.shared.state), State::Pending { .. })
    }

    /// One sentence that says what the operation waits for. This call waits for the thread of
    /// the library, but for no server.
    pub fn explain(&self) -> String {
        let shared = self.shared.clone();
        let told = self.shared.engine.call(move |on| {
            let promise = shared.live_promise(on)?;
            let mut text = [0u8; 1024];
            let n = unsafe { tnk_promise_explain(promise, text.as_mut_ptr().cast(), text.len()) };
            Some(String::from_utf8_lossy(&text[..n.min(text.len() - 1)]).into_owned())
        });
        told.ok().flatten().unwrap_or_else(|| "it has ended".into())
    }

    /// Wait on this thread for the result. In asynchronous code, await the operation instead.
    pub fn wait(mut self) -> Result<T> {
        self.wait_until(None)
    }

    /// Wait on this thread for at most that time. After it the operation is canceled, and the
    /// error is [`Code::ETIMEDOUT`].
    pub fn wait_timeout(mut self, timeout: Duration) -> Result<T> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&mut self, end: Option<Instant>) -> Result<T> {
        let engine = self.shared.engine.clone();
        wait_for(&engine, end, |context| Pin::new(&mut *self).poll(context))?
    }

    /// Whether the operation has ended, and its error. The result stays where it is.
    pub(crate) fn poll_end(&self, context: &mut Context<'_>) -> Poll<Option<Error>> {
        let own = context.waker().clone();
        let mut state = lock(&self.shared.state);
        let before = match &mut *state {
            State::Pending { waker, .. } => waker.replace(own),
            State::Done(Err(error)) => return Poll::Ready(Some(error.clone())),
            State::Done(Ok(_)) | State::Taken => return Poll::Ready(None),
        };
        drop(state);
        drop(before);
        Poll::Pending
    }
}

/// Poll until there is something, at most until then, on a thread without an executor.
pub(crate) fn wait_for<T>(
    engine: &Engine,
    end: Option<Instant>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Result<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(found) = poll(&mut context) {
            return Ok(found);
        }
        if engine.is_taker() {
            // Wakers run here, so it could never come.
            return Err(Error::from_code(Code::EREENTRANT));
        }
        match end.map(|end| end.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(left) if left.is_zero() => return Err(Error::from_code(Code::ETIMEDOUT)),
            Some(left) => thread::park_timeout(left),
        }
    }
}

struct Unpark(Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T: Send + 'static> Future for Operation<T> {
    type Output = Result<T>;

    /// # Panics
    /// If it is polled again after it has returned its result.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let own = context.waker().clone();
        let mut state = lock(&self.shared.state);
        if let State::Pending { waker, .. } = &mut *state {
            let before = waker.replace(own);
            // A waker may do anything when it is dropped.
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(result) => Poll::Ready(result),
            _ => panic!("an operation was polled after its end"),
        }
    }
}

impl<T: Send + 'static> Drop for Operation<T> {
    fn drop(&mut self) {
        let before = match &mut *lock(&self.shared.state) {
            State::Pending { waker, .. } => waker.take(),
            _ => None,
        };
        drop(before);
        if !self.is_detached {
            self.cancel();
        }
    }
}

impl<T: Send + 'static> std::fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation").field("is_done", &self.is_done()).finish()
    }
}
