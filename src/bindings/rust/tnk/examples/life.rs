// SPDX-License-Identifier: MIT
//! A program that does a bit of everything, for valgrind and for a library without memory.
//!
//! Usage: life [FIRST STEP]. With arguments it fails allocation FIRST of the library, then FIRST
//! + STEP and so on, up to the last one of a life: see preload.c of the tests.
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use tnk::{
    AdamParams, Code, Datum, LogLevel, LoraOptions, Result, SamplingOptions, SamplingParams,
    SaveOptions, Service,
};

const LIMIT: Duration = Duration::from_secs(60);

fn live() -> Result<Vec<i32>> {
    let service = Service::options()
        .on_queue_state(|_| ())
        .on_recovery(|_| ())
        .log(LogLevel::Trace, |line| assert!(!line.message.is_empty()))
        .open()?;
    let training =
        service.create_lora(LoraOptions::new("tnk/byte-lm").rank(8).seed(1)).wait_timeout(LIMIT)?;
    let tokens: Vec<i32> = "hello".bytes().map(i32::from).collect();
    let pass = training.forward_backward(vec![Datum::next_token(&tokens); 2], "cross_entropy");
    pass.explain();
    let step = training.optim_step(AdamParams::new().learning_rate(0.01));
    assert!(pass.wait_timeout(LIMIT)?.loss().is_some());
    step.wait_timeout(LIMIT)?;
    let custom = training.forward_backward_custom(vec![Datum::next_token(&tokens)], |loss| {
        loss.metric("length", loss.logprobs(0).len() as f64);
        loss.gradient(0).fill(-1.0);
        Ok(1.0)
    });
    assert_eq!(custom.wait_timeout(LIMIT)?.metrics().get("length"), Some(4.0));
    let saved = training.save_weights_for_sampler("life", SaveOptions::new());
    // The name exists in a later life.
    let _ = saved.wait_timeout(LIMIT);
    let base = service.create_sampling(SamplingOptions::base_model("tnk/byte-lm"));
    let params = SamplingParams::new().max_tokens(3).seed(1);
    let sampling = training.save_weights_and_get_sampling().wait_timeout(LIMIT)?;
    let samples = sampling.sample(&tokens, params.clone()).wait_timeout(LIMIT)?;
    drop(sampling.sample(&tokens, params.clone()));
    let mut stream = sampling.stream(&tokens, params.clone());
    let mut streamed = Vec::new();
    while let Some(token) = stream.wait_next() {
        streamed.push(token?.token);
    }
    assert_eq!(stream.finish().wait_timeout(LIMIT)?.first().tokens(), streamed);
    drop(sampling.stream(&tokens, params.clone().max_tokens(1000)));
    let open = sampling.stream(&tokens, params.max_tokens(1_000_000));
    base.detach();
    service.close().wait_timeout(LIMIT)?;
    drop((service, training, sampling, open));
    Ok(samples.first().tokens().to_vec())
}

fn set(control: &File, n: i64) {
    control.write_all_at(&n.to_ne_bytes(), 0).unwrap();
}

fn has_failed(control: &File) -> bool {
    let mut bytes = [0; 8];
    control.read_exact_at(&mut bytes, 0).unwrap();
    i64::from_ne_bytes(bytes) <= 0
}

fn main() {
    let wanted = live().unwrap();
    let numbers: Vec<i64> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let (mut n, step) = match numbers[..] {
        [first, step] => (first, step),
        _ => return println!("ended at 0"),
    };
    let path = std::env::var("TNK_TEST_CONTROL").expect("TNK_TEST_CONTROL names the control file");
    let control = OpenOptions::new().read(true).write(true).open(path).unwrap();
    loop {
        set(&control, n);
        let got = live();
        let was_reached = has_failed(&control);
        set(&control, 0);
        match got {
            Ok(tokens) => assert_eq!(tokens, wanted, "allocation {}", n),
            Err(error) => {
                println!("# {}: {:?}", n, error);
                assert!(was_reached, "{:?}", error);
                assert_ne!(
                    error.code(),
                    Code::ETIMEDOUT,
                    "allocation {}: an operation does not end",
                    n
                );
            }
        }
        if !was_reached {
            return println!("ended at {}", n);
        }
        n += step;
    }
}
