// SPDX-License-Identifier: MIT
//! The end of things: in each order, at each moment, and twice.
use std::any::Any;
use std::task::Poll;

use crate::support::*;
use tnk::*;

/// Each order of `n` numbers.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for shorter in orders(n - 1) {
        for place in 0..n {
            let mut order = shorter.clone();
            order.insert(place, n - 1);
            found.push(order);
        }
    }
    found
}

#[test]
fn objects_drop_in_each_order() {
    let server = Server::new(&[]);
    // Keeps the threads, which other tests end with each service.
    let _engine = server.service();
    for order in orders(5) {
        let service = server.service();
        let training = train(&service);
        let pass = training.forward(vec![datum()], "cross_entropy").wait().unwrap();
        let pending = training.optim_step(adam());
        let sampling =
            service.create_sampling(SamplingOptions::base_model("tnk/byte-lm")).wait().unwrap();
        let stream = sampling.stream(tokens("he"), params().max_tokens(100_000));
        // The stream keeps its client.
        drop(sampling);
        let mut all: Vec<Option<Box<dyn Any>>> = vec![
            Some(Box::new(service)),
            Some(Box::new(training)),
            Some(Box::new(pass)),
            Some(Box::new(pending)),
            Some(Box::new(stream)),
        ];
        for i in order {
            all[i] = None;
        }
    }
}

/// The states of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    NeverPolled,
    Polled,
    Settled,
    Read,
}

/// What a program does with it then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Drop,
    Detach,
    Cancel,
    CloseService,
    DropService,
}

#[test]
fn operations_end_at_each_moment() {
    let server = Server::new(&[]);
    let silent = Server::silent();
    for moment in [Moment::NeverPolled, Moment::Polled, Moment::Settled, Moment::Read] {
        for end in [End::Drop, End::Detach, End::Cancel, End::CloseService, End::DropService] {
            println!("{:?} {:?}", moment, end);
            let is_pending = matches!(moment, Moment::NeverPolled | Moment::Polled);
            let service = if is_pending { silent.service() } else { server.service() };
            let mut operation = service.create_lora(lora());
            match moment {
                Moment::NeverPolled => (),
                Moment::Polled => assert!(matches!(poll(&mut operation, false), Poll::Pending)),
                Moment::Settled | Moment::Read => {
                    while !operation.is_done() {
                        std::thread::yield_now();
                    }
                }
            }
            if moment == Moment::Read {
                assert!(matches!(poll(&mut operation, false), Poll::Ready(Ok(_))));
            }
            let code = match end {
                End::Drop => {
                    drop(operation);
                    // The server has no answer for it, so only the cancellation ends it.
                    while !service.dump().unwrap().contains("\"pending\":0,") {
                        std::thread::yield_now();
                    }
                    None
                }
                End::Detach => {
                    operation.detach();
                    let pending = format!("\"pending\":{},", u8::from(is_pending));
                    assert!(service.dump().unwrap().contains(&pending));
                    service.close().wait().unwrap();
                    None
                }
                End::Cancel => {
                    operation.cancel();
                    operation.cancel();
                    Some((operation, Code::ECANCELED))
                }
                End::CloseService => {
                    service.close().wait().unwrap();
                    Some((operation, Code::ECLOSED))
                }
                // The operation keeps it open.
                End::DropService => {
                    drop(service);
                    operation.cancel();
                    Some((operation, Code::ECANCELED))
                }
            };
            if let (Some((operation, code)), false) = (code, moment == Moment::Read) {
                let got = operation.wait_timeout(LIMIT);
                assert_eq!(
                    got.err().map(|error| error.code()),
                    if is_pending { Some(code) } else { None }
                );
            }
        }
    }
}

/// Each call on what was closed is an error, however it was closed.
#[test]
fn closed_objects_refuse() {
    let server = Server::new(&[]);
    for is_twice in [false, true] {
        let service = server.service();
        let training = train(&service);
        let sampling = training.save_weights_and_get_sampling().wait().unwrap();
        let first = service.close();
        if is_twice {
            service.close().wait().unwrap();
        }
        // While it closes, or after that.
        let codes = vec![
            training.optim_step(adam()).wait().err(),
            training.forward(vec![datum()], "cross_entropy").wait().err(),
            training.forward_backward(vec![datum()], "cross_entropy").wait().err(),
            training.save_state("x", SaveOptions::new()).wait().err(),
            training.save_weights_and_get_sampling().wait().err(),
            training.load_state("tinker://a/weights/b", true).wait().err(),
            training.ready().wait().err(),
            training.info().err(),
            sampling.sample(tokens("he"), params()).wait().err(),
            sampling.compute_logprobs(tokens("he")).wait().err(),
            sampling.export().err(),
            service.create_lora(lora()).wait().err(),
            service.capabilities().wait().err(),
            service.open_ledger("/nonexistent", LedgerOptions::new()).wait().err(),
            service.dump().err(),
        ];
        for (i, error) in codes.into_iter().enumerate() {
            let code = error.map(|error| error.code());
            assert_eq!(code, Some(Code::ECLOSED), "call {}", i);
        }
        first.wait().unwrap();
        service.close().wait().unwrap();
    }
}

#[test]
fn wakers_and_waits() {
    let server = Server::new(&[]);
    let silent = Server::silent();
    let service = server.service();
    // A waker that panics harms nobody else.
    let mut operation = service.create_lora(lora());
    assert!(matches!(poll(&mut operation, true), Poll::Pending));
    let training = train(&service);
    assert!(operation.wait_timeout(LIMIT).is_ok());
    // The last waker is the one that is called.
    let mut operation = training.optim_step(adam());
    let _ = poll(&mut operation, true);
    let _ = poll(&mut operation, false);
    operation.wait().unwrap();

    let waiting = silent.service().create_lora(lora());
    assert!(!waiting.explain().is_empty());
    let error = waiting.wait_timeout(std::time::Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.code(), Code::ETIMEDOUT);
    let done = training.optim_step(adam());
    while !done.is_done() {
        std::thread::yield_now();
    }
    assert_eq!(done.explain(), "it has ended");
}

/// Threads cancel, drop and await while results come.
#[test]
fn cancels_while_results_come() {
    let server = Server::new(&[]);
    let sampling = server
        .service()
        .create_sampling(SamplingOptions::base_model("tnk/byte-lm"))
        .wait()
        .unwrap();
    for _ in 0..20 {
        let all: Vec<_> =
            (0..50).map(|_| std::sync::Arc::new(sampling.sample(tokens("he"), params()))).collect();
        let others: Vec<_> = all.clone();
        let canceler = std::thread::spawn(move || {
            for one in others {
                one.cancel();
                one.explain();
            }
        });
        for mut one in all {
            let operation = loop {
                match std::sync::Arc::try_unwrap(one) {
                    Ok(operation) => break operation,
                    Err(shared) => one = shared,
                }
                std::thread::yield_now();
            };
            let code = operation.wait_timeout(LIMIT).err().map(|error| error.code());
            assert!(code.is_none() || code == Some(Code::ECANCELED), "{:?}", code);
        }
        canceler.join().unwrap();
    }
}

/// A child process gets an error, and can begin anew.
#[test]
fn forks() {
    extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let server = Server::new(&[]);
    let service = server.service();
    let training = train(&service);
    let child = unsafe { fork() };
    if child == 0 {
        let refused = training.optim_step(adam()).wait_timeout(LIMIT);
        let is_refused = refused.err().map(|error| error.code()) == Some(Code::EFORKED);
        let is_new = server.service().create_lora(lora()).wait_timeout(LIMIT).is_ok();
        unsafe {
            _exit(if !is_refused {
                3
            } else if !is_new {
                4
            } else {
                0
            })
        };
    }
    let mut status = 0;
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(training.optim_step(adam()).wait().is_ok());
}
