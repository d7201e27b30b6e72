// SPDX-License-Identifier: MIT
//! Samples whose tokens are read while they are generated.
use std::collections::VecDeque;
use std::future::Future;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tnk_sys::*;

use crate::engine::{lock, Engine};
use crate::error::{string, Code, Error, Result};
use crate::operation::{wait_for, Operation};
use crate::result::Samples;
use crate::sampling::SamplingInner;

/// One token of a [`TokenStream`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Token {
    /// Its id in the vocabulary.
    pub token: i32,
    /// Its position in the sequence, from 0.
    pub index: u32,
    /// Its logprob, if the server sent one.
    pub logprob: Option<f32>,
    /// Its text, if the server sends text. It is empty if the token ends inside a character; a
    /// later token has the whole character then.
    pub text: Option<String>,
}

struct Received {
    tokens: VecDeque<Token>,
    waker: Option<Waker>,
    /// False once the reader was dropped, or waits for the whole sample.
    is_read: bool,
}

/// The tokens on their way from the runtime's thread to the reader.
pub(crate) struct Channel {
    received: Mutex<Received>,
    engine: Arc<Engine>,
}

/// What a stream needs until its end. The library calls `on_token` with the channel until then.
pub(crate) struct StreamKeep {
    pub _channel: Arc<Channel>,
    pub _sampling: Arc<SamplingInner>,
}

impl Channel {
    pub fn new(engine: &Arc<Engine>) -> Arc<Channel> {
        let received = Received { tokens: VecDeque::new(), waker: None, is_read: true };
        Arc::new(Channel { received: Mutex::new(received), engine: engine.clone() })
    }

    /// On the runtime's thread. A waker is code of the program, so it runs on the other one.
    fn push(&self, token: Token) {
        let mut received = lock(&self.received);
        if !received.is_read {
            return;
        }
        received.tokens.push_back(token);
        if let Some(waker) = received.waker.take() {
            drop(received);
            self.engine.later(Box::new(move || waker.wake()));
        }
    }
}

/// A result other than 0 cancels the sample.
pub(crate) extern "C" fn on_token(token: *const tnk_stream_token_t, user: *mut c_void) -> c_int {
    // A panic must not reach C.
    let pushed = catch_unwind(AssertUnwindSafe(|| {
        // Both exist until this returns. The operation keeps the channel.
        let (channel, token) = unsafe { (&*(user as *const Channel), &*token) };
        channel.push(Token {
            token: token.token,
            index: token.index,
            logprob: Some(token.logprob).filter(|logprob| !logprob.is_nan()),
            text: unsafe { string(token.text) },
        })
    }));
    c_int::from(pushed.is_err())
}

/// The tokens of one sequence while the server generates them. Made by
/// [`Sampling::stream`](crate::Sampling::stream).
///
/// Read it with [`next`](TokenStream::next) in asynchronous code, or with
/// [`wait_next`](TokenStream::wait_next) without an executor. Then
/// [`finish`](TokenStream::finish) returns the whole sample. Tokens that are not read yet are
/// kept, so a slow reader does not slow down the server.
///
/// Dropping it cancels the sample. Until its end it keeps its client and its service open.
///
/// This crate depends on no other one, so it does not implement the trait `Stream` of the crate
/// `futures`. `futures::stream::poll_fn(move |context| tokens.poll_next(context))` does.
///
/// `Send` and `Sync`.
#[must_use = "dropping a stream cancels it; read it with next() or wait_next(), or call finish()"]
pub struct TokenStream {
    channel: Arc<Channel>,
    operation: Option<Operation<Samples>>,
    engine: Arc<Engine>,
    /// The failure was returned, which ends the stream.
    failure: Option<Error>,
}

impl TokenStream {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        channel: Arc<Channel>,
        operation: Operation<Samples>,
    ) -> TokenStream {
        TokenStream { channel, operation: Some(operation), engine: engine.clone(), failure: None }
    }

    /// The next token, for `poll_fn` and for executors. It returns the tokens, then the error
    /// if the sample failed, then None. The last waker is the one that is called.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Token>>> {
        let operation = match &self.operation {
            Some(operation) if self.failure.is_none() => operation,
            _ => return Poll::Ready(None),
        };
        // The library delivers all tokens before the end. So after an end that was seen here,
        // the list below is complete.
        let ended = operation.poll_end(context);
        let mut received = lock(&self.channel.received);
        if let Some(token) = received.tokens.pop_front() {
            return Poll::Ready(Some(Ok(token)));
        }
        match ended {
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(error)) => {
                self.failure = Some(error.clone());
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let before = received.waker.replace(context.waker().clone());
                drop(received);
                // A waker may do anything when it is dropped.
                drop(before);
                Poll::Pending
            }
        }
    }

    /// A future of the next token. It is None at the end. A failed sample returns its error
    /// once, after the tokens that were received. Dropping the future loses no token.
    pub fn next(&mut self) -> Next<'_> {
        Next { stream: self }
    }

    /// Wait on this thread for the next token, as [`next`](TokenStream::next) does in
    /// asynchronous code.
    pub fn wait_next(&mut self) -> Option<Result<Token>> {
        let engine = self.engine.clone();
        match wait_for(&engine, None, |context| self.poll_next(context)) {
            Ok(next) => next,
            Err(error) => Some(Err(error)),
        }
    }

    /// The whole sample, with one sequence, as an operation. Tokens that were not read are
    /// dropped. It can be called at any time.
    pub fn finish(mut self) -> Operation<Samples> {
        match (self.failure.take(), self.operation.take()) {
            (None, Some(operation)) => operation,
            (failure, _) => Operation::failed(
                &self.engine,
                failure.unwrap_or_else(|| Error::from_code(Code::EINTERNAL)),
            ),
        }
    }

    /// Ask to cancel. The stream then returns the tokens that it has, and the error
    /// [`Code::ECANCELED`] if the sample had not ended yet.
    pub fn cancel(&self) {
        if let Some(operation) = &self.operation {
            operation.cancel();
        }
    }

    /// One sentence that says what the sample waits for, as [`Operation::explain`].
    pub fn explain(&self) -> String {
        self.operation.as_ref().map_or_else(String::new, Operation::explain)
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        let (unread, waker) = {
            let mut received = lock(&self.channel.received);
            received.is_read = false;
            (std::mem::take(&mut received.tokens), received.waker.take())
        };
        drop((unread, waker));
    }
}

impl std::fmt::Debug for TokenStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = lock(&self.channel.received).tokens.len();
        f.debug_struct("TokenStream").field("received", &n).finish()
    }
}

/// The future of [`TokenStream::next`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Next<'a> {
    stream: &'a mut TokenStream,
}

impl Future for Next<'_> {
    type Output = Option<Result<Token>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.stream.poll_next(context)
    }
}
