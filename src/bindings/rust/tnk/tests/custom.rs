// SPDX-License-Identifier: MIT
//! Losses that the program computes.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};

use crate::support::*;
use tnk::*;

/// Cross entropy, the sum over the tokens.
fn cross_entropy(loss: &mut CustomLoss) -> LossResult {
    let mut sum = 0.0;
    for i in 0..loss.len() {
        let (logprobs, gradient) = loss.example(i);
        sum -= logprobs.iter().map(|one| f64::from(*one)).sum::<f64>();
        gradient.fill(-1.0);
    }
    Ok(sum)
}

/// A model that is trained with a loss of the program has the losses of one that the service
/// trains with the same loss.
#[test]
fn custom_losses_train() {
    let server = Server::new(&[]);
    let service = server.service();
    let (own, other) = (train(&service), train(&service));
    let data: Arc<[Datum]> = vec![datum(), Datum::next_token(&tokens("world!"))].into();
    for step in 0..5 {
        let pass = own.forward_backward_custom(data.clone(), cross_entropy);
        let wanted = other.forward_backward(data.clone(), "cross_entropy");
        own.optim_step(adam()).wait().unwrap();
        other.optim_step(adam()).wait().unwrap();
        let (pass, wanted) = (pass.wait().unwrap(), wanted.wait().unwrap());
        let sum = |pass: &Pass| pass.metrics().get("loss:sum").unwrap();
        assert!((sum(&pass) - sum(&wanted)).abs() < 1e-4, "{}: {:?} {:?}", step, pass, wanted);
    }
}

/// A function sees each example with its length, and its metrics are in the result.
#[test]
fn custom_losses_have_metrics() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let data = vec![datum(), Datum::next_token(&tokens("no"))];
    let (send, receive) = mpsc::channel();
    let pass = training.forward_backward_custom(data, move |loss| {
        let lengths: Vec<usize> = (0..loss.len()).map(|i| loss.logprobs(i).len()).collect();
        send.send((lengths, loss.is_empty(), loss.gradient(1).to_vec(), format!("{:?}", loss)))?;
        loss.metric("mine", 7.5);
        loss.metric("other:mean", -1.0);
        Ok(3.25)
    });
    let metrics = pass.wait().unwrap().metrics();
    for (name, wanted) in [("mine", 7.5), ("other:mean", -1.0), ("loss:sum", 3.25)] {
        assert_eq!(metrics.get(name), Some(wanted), "{:?}", metrics);
    }
    let (lengths, is_empty, gradient, text) = receive.recv().unwrap();
    assert_eq!((lengths, is_empty, gradient), (vec![4, 1], false, vec![0.0]));
    assert_eq!(text, "CustomLoss { len: 2 }");
}

/// However a function fails, the error has its words, and the client goes on.
#[test]
fn custom_losses_fail() {
    type Function = fn(&mut CustomLoss) -> LossResult;
    let server = Server::new(&[]);
    let training = train(&server.service());
    let table: Vec<(&str, Function)> = vec![
        ("no reward", |_| Err("no reward".into())),
        ("invalid float literal", |_| Ok("one".parse::<f64>()?)),
        ("trained has 4 elements instead of 1", |loss| {
            Ok(rl::kl(&[0.0], loss.logprobs(0), None, rl::Kl::K1)?)
        }),
        ("panicked", |_| panic!("a loss function of a test")),
        ("panicked", |loss| Ok(f64::from(loss.logprobs(1)[0]))),
        ("metric has a NUL", |loss| {
            loss.metric("a\0b", 1.0);
            Ok(1.0)
        }),
    ];
    for (words, function) in table {
        let pass = training.forward_backward_custom(vec![datum()], function);
        let error = pass.wait().unwrap_err();
        assert_eq!(error.code(), Code::EUSER, "{:?}", error);
        assert!(error.message().contains(words), "{}: {:?}", words, error);
    }
    let error = training.forward_backward_custom(vec![datum()], |_| Ok(f64::NAN)).wait();
    assert!(error.is_err(), "a loss that is not a number: {:?}", error);
    let no_target = vec![Datum::new(tokens("hell"))];
    let error = training.forward_backward_custom(no_target, cross_entropy).wait().unwrap_err();
    assert!(error.message().contains("target_tokens"), "{:?}", error);
    training.forward_backward_custom(vec![datum()], cross_entropy).wait().unwrap();
}

/// A function may take long and may use the crate: it runs on a thread of its own, and later
/// operations of its client wait for it.
#[test]
fn custom_losses_hold_nothing_up() {
    let server = Server::new(&[]);
    let service = server.service();
    let training = train(&service);
    let (go, wait) = mpsc::channel::<()>();
    let of_function = service.clone();
    let pass = training.forward_backward_custom(vec![datum()], move |loss| {
        wait.recv()?;
        of_function.health().wait()?;
        cross_entropy(loss)
    });
    let step = training.optim_step(adam());
    service.health().wait_timeout(LIMIT).unwrap();
    assert!(!pass.is_done() && !step.is_done());
    go.send(()).unwrap();
    pass.wait().unwrap();
    step.wait().unwrap();
}

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);
impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// An operation may end at any moment of its function. What the function owns is dropped, and
/// the service closes after it.
#[test]
fn custom_losses_end_at_any_moment() {
    let server = Server::new(&[]);
    let ways = ["wait", "drop", "cancel", "detach", "close", "close first", "leave"];
    for is_running in [false, true] {
        for way in ways {
            let service = server.service();
            let training = train(&service);
            let ((go, wait), (begin, began)) = (mpsc::channel::<()>(), mpsc::channel());
            let is_dropped = Arc::new(AtomicBool::new(false));
            let owned = Dropped(is_dropped.clone());
            let pass = training.forward_backward_custom(vec![datum()], move |loss| {
                let _owned = &owned;
                let _ = begin.send(());
                let _ = wait.recv();
                cross_entropy(loss)
            });
            if is_running {
                began.recv().unwrap();
            }
            let mut closed = None;
            let result = match way {
                "drop" => {
                    drop(pass);
                    drop(go);
                    None
                }
                "cancel" => {
                    pass.cancel();
                    drop(go);
                    Some(pass.wait_timeout(LIMIT))
                }
                "detach" => {
                    pass.detach();
                    drop(go);
                    None
                }
                "close" => {
                    closed = Some(service.close());
                    drop(go);
                    Some(pass.wait_timeout(LIMIT))
                }
                "close first" => {
                    drop(go);
                    closed = Some(service.close());
                    Some(pass.wait_timeout(LIMIT))
                }
                "leave" => {
                    drop((training, service));
                    drop(pass);
                    drop(go);
                    wait_until(|| is_dropped.load(Ordering::Acquire));
                    continue;
                }
                _ => {
                    drop(go);
                    Some(pass.wait_timeout(LIMIT))
                }
            };
            let name = format!("{} {}", way, is_running);
            match (way, result) {
                ("wait", result) => assert!(result.unwrap().is_ok(), "{}", name),
                ("cancel" | "close" | "close first", Some(Err(error))) => {
                    assert!([Code::ECANCELED, Code::ECLOSED].contains(&error.code()), "{}", name)
                }
                // It was faster.
                _ => {}
            }
            closed.unwrap_or_else(|| service.close()).wait_timeout(LIMIT).expect(&name);
            drop((training, service));
            wait_until(|| is_dropped.load(Ordering::Acquire));
        }
    }
}

/// Until something that another thread does. A test that fails here hangs, and is ended.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}
