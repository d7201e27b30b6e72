// SPDX-License-Identifier: MIT
//! Programs that end while operations run and the service is open. Usage: leave HOW
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tnk::{AdamParams, Datum, LoraOptions, Service};

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
        "loss" | "loss exit" => {
            let (begin, began) = std::sync::mpsc::channel();
            let data = vec![Datum::next_token(&[104, 105])];
            let does_exit = how == "loss exit";
            let pass = training.forward_backward_custom(data, move |_| {
                begin.send(())?;
                if does_exit {
                    std::process::exit(0);
                }
                // While the process ends.
                std::thread::sleep(std::time::Duration::from_millis(50));
                println!("computed");
                Ok(1.0)
            });
            began.recv().unwrap();
            if does_exit {
                let _ = pass.wait();
            } else {
                pass.detach();
            }
        }
        #[cfg(feature = "gateway")]
        "gateway" => {
            let options = tnk::GatewayOptions::new(&tnk::chat::Tokenizer::bytes());
            let gateway = service.open_gateway(options).unwrap();
            gateway.use_weights(tnk::SamplingOptions::base_model("tnk/byte-lm")).detach();
            std::mem::forget(gateway);
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
