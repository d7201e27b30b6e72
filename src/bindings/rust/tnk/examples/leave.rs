// SPDX-License-Identifier: MIT
//! Programs that end while operations run and the service is open. Usage: leave HOW
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tnk::{AdamParams, LoraOptions, Service};

struct Exit;
impl Wake for Exit {
    fn wake(self: Arc<Self>) {
        std::process::exit(0);
    }
}

fn main() {
    let how = std::env::args().nth(1).expect("usage: leave HOW");
    let service = Service::new().unwrap();
    let training = service.create_lora(LoraOptions::new("tnk/byte-lm").rank(8)).wait().unwrap();
    println!("{}", service.dump().unwrap());
    let mut step = training.optim_step(AdamParams::new());
    match how.as_str() {
        "drop" => {
            drop(step);
            return;
        }
        "forget" => std::mem::forget(step),
        "exit" => std::process::exit(0),
        "thread" => {
            std::thread::spawn(|| std::process::exit(0));
            let _ = step.wait();
        }
        "waker" => {
            let waker = Waker::from(Arc::new(Exit));
            let _ = Pin::new(&mut step).poll(&mut Context::from_waker(&waker));
        }
        "panic" => panic!("as it was asked for"),
        _ => panic!("unknown: {}", how),
    }
    std::mem::forget(service);
    std::mem::forget(training);
    if how == "waker" {
        loop {
            std::thread::park();
        }
    }
}
