// SPDX-License-Identifier: MIT
//! What the tests share: a local server, a small executor, and short names.
#![allow(dead_code)]
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tnk::{AdamParams, Datum, LoraOptions, SamplingParams, Service, Training};

pub const KEY: &str = "tml-local";
/// Far more than an operation of a local server takes.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A server that ends with this value. TNK_COMMAND is the command `tnk`.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    pub fn new(options: &[&str]) -> Server {
        let command = std::env::var("TNK_COMMAND").unwrap_or_else(|_| "tnk".into());
        let mut child = Command::new(command)
            .args(["local", "--port", "0", "--exit-with-stdin"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("TNK_COMMAND names the command tnk");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect(&line);
        Server { url: url.to_string(), child }
    }

    /// One whose operations have no results for longer than a test runs.
    pub fn silent() -> Server {
        Server::new(&["--stub", "--hold-ms", "600000", "--latency-ms", "600000"])
    }

    pub fn service(&self) -> Service {
        Service::options().base_url(&self.url).api_key(KEY).proxy("").open().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

pub fn tokens(text: &str) -> Vec<i32> {
    text.bytes().map(i32::from).collect()
}

pub fn datum() -> Datum {
    Datum::next_token(&tokens("hello"))
}

pub fn lora() -> LoraOptions {
    LoraOptions::new("tnk/byte-lm").rank(8).seed(1)
}

pub fn params() -> SamplingParams {
    SamplingParams::new().max_tokens(3).seed(1)
}

pub fn train(service: &Service) -> Training {
    service.create_lora(lora()).wait_timeout(LIMIT).unwrap()
}

pub fn adam() -> AdamParams {
    AdamParams::new().learning_rate(0.01)
}

/// A waker that does nothing, or panics.
pub struct Woken(pub bool);
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        if self.0 {
            panic!("a waker of a test");
        }
    }
}

pub fn poll<F: Future + Unpin>(future: &mut F, panics: bool) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Woken(panics)));
    std::pin::Pin::new(future).poll(&mut Context::from_waker(&waker))
}
