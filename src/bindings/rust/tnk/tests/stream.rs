// SPDX-License-Identifier: MIT
//! Streams of tokens against a local server.
use std::sync::{mpsc, Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::support::*;
use tnk::*;

fn sampler(server: &Server) -> (Service, Sampling) {
    let service = server.service();
    let options = SamplingOptions::base_model("tnk/byte-lm");
    let sampling = service.create_sampling(options).wait_timeout(LIMIT).unwrap();
    (service, sampling)
}

/// The local server's model is full after so many tokens.
fn endless() -> SamplingParams {
    params().max_tokens(1_000_000).stop(Stop::Never)
}

/// How a program reads a stream.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Waits,
    Awaits,
    Polls,
    DropsFutures,
}

fn read(mut stream: TokenStream, reader: Reader) -> (Vec<Token>, Result<Samples>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut got = Vec::new();
    loop {
        let next = match reader {
            Reader::Waits => stream.wait_next(),
            Reader::Awaits => runtime.block_on(stream.next()),
            Reader::Polls => {
                runtime.block_on(std::future::poll_fn(|context| stream.poll_next(context)))
            }
            Reader::DropsFutures => {
                // A future that was polled and dropped loses no token.
                match poll(&mut stream.next(), false) {
                    Poll::Ready(next) => next,
                    Poll::Pending => {
                        std::thread::yield_now();
                        continue;
                    }
                }
            }
        };
        match next {
            Some(token) => got.push(token.unwrap()),
            None => break,
        }
    }
    assert!(stream.wait_next().is_none());
    let whole = runtime.block_on(stream.finish());
    (got, whole)
}

#[test]
fn streams_are_samples() {
    let server = Server::new(&[]);
    let (_service, sampling) = sampler(&server);
    let first = sampling.sample(tokens("he"), params()).wait().unwrap().first().tokens()[0];
    let mut n_letters = 0;
    for wanted in [
        params(),
        params().max_tokens(1),
        params().max_tokens(500).stop(Stop::Never),
        params().stop(Stop::Tokens(vec![first])),
        params().temperature(0.0).top_k(5).top_p(0.5),
    ] {
        let sample = sampling.sample(tokens("he"), wanted.clone()).wait().unwrap();
        for reader in [Reader::Waits, Reader::Awaits, Reader::Polls, Reader::DropsFutures] {
            println!("{:?} {:?}", wanted, reader);
            let (got, whole) = read(sampling.stream(tokens("he"), wanted.clone()), reader);
            let whole = whole.unwrap();
            let (got_ids, texts): (Vec<i32>, Vec<String>) =
                got.iter().map(|one| (one.token, one.text.clone().unwrap())).unzip();
            assert_eq!(got_ids, sample.first().tokens());
            assert_eq!(whole.first().tokens(), sample.first().tokens());
            assert_eq!(whole.first().stop_reason(), sample.first().stop_reason());
            assert!(got.iter().enumerate().all(|(i, one)| one.index as usize == i));
            let logprobs: Vec<f32> = got.iter().map(|one| one.logprob.unwrap()).collect();
            assert_eq!(Some(&logprobs[..]), whole.first().logprobs());
            for (one, text) in got.iter().zip(&texts) {
                if (32..127).contains(&one.token) {
                    // It may follow bytes that are no character.
                    assert!(text.ends_with(one.token as u8 as char), "{:?}", one);
                    n_letters += 1;
                }
            }
        }
    }
    assert!(n_letters > 100);
    // Without a reader, the whole sample is still there.
    let whole = sampling.stream(tokens("he"), params()).finish().wait().unwrap();
    assert_eq!(whole.first().tokens().len(), 3);
}

/// The states of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Started,
    Polled,
    SomeRead,
    Ended,
    AllRead,
}

/// What a program does with it then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Drop,
    Cancel,
    CloseService,
    DropOthers,
    FinishAndCancel,
    FinishAndDrop,
}

fn is_idle(service: &Service) -> bool {
    service.dump().unwrap().contains("\"counters\":{\"pending\":0,")
}

#[test]
fn streams_end_at_each_moment() {
    let server = Server::new(&[]);
    // All tokens of an endless sample take it minutes.
    let slow = Server::new(&["--faults", "slow_body/stream_sample:1000"]);
    // Its samples have no token for longer than a test runs.
    let silent = Server::new(&["--latency-ms", "600000"]);
    for moment in
        [Moment::Started, Moment::Polled, Moment::SomeRead, Moment::Ended, Moment::AllRead]
    {
        for end in [
            End::Drop,
            End::Cancel,
            End::CloseService,
            End::DropOthers,
            End::FinishAndCancel,
            End::FinishAndDrop,
        ] {
            println!("{:?} {:?}", moment, end);
            let is_over = matches!(moment, Moment::Ended | Moment::AllRead);
            let (service, sampling) = sampler(match moment {
                Moment::Started | Moment::Polled => &silent,
                Moment::SomeRead => &slow,
                Moment::Ended | Moment::AllRead => &server,
            });
            let mut stream =
                sampling.stream(tokens("he"), if is_over { params() } else { endless() });
            match moment {
                Moment::Started => (),
                Moment::Polled => assert!(poll(&mut stream.next(), false).is_pending()),
                Moment::SomeRead => {
                    for i in 0..3 {
                        assert_eq!(stream.wait_next().unwrap().unwrap().index, i);
                    }
                }
                Moment::Ended => {
                    while !is_idle(&service) {
                        std::thread::yield_now();
                    }
                }
                Moment::AllRead => while stream.wait_next().is_some() {},
            }
            let code = match end {
                End::Drop => {
                    drop(stream);
                    while !is_idle(&service) {
                        std::thread::yield_now();
                    }
                    continue;
                }
                End::Cancel => {
                    stream.cancel();
                    stream.cancel();
                    Code::ECANCELED
                }
                End::CloseService => {
                    service.close().wait().unwrap();
                    Code::ECLOSED
                }
                // The stream keeps them open.
                End::DropOthers => {
                    drop((service, sampling));
                    stream.cancel();
                    Code::ECANCELED
                }
                End::FinishAndCancel => {
                    let whole = stream.finish();
                    whole.cancel();
                    check(whole.wait_timeout(LIMIT), Code::ECANCELED, is_over);
                    continue;
                }
                End::FinishAndDrop => {
                    drop(stream.finish());
                    while !is_idle(&service) {
                        std::thread::yield_now();
                    }
                    continue;
                }
            };
            let mut failed = None;
            while let Some(next) = stream.wait_next() {
                assert!(failed.is_none(), "nothing follows an error");
                failed = next.err().map(|error| error.code());
            }
            assert_eq!(failed, if is_over { None } else { Some(code) });
            // An error that was read is still the result.
            check(stream.finish().wait_timeout(LIMIT), code, is_over);
        }
    }
}

fn check(got: Result<Samples>, code: Code, is_over: bool) {
    let wanted = if is_over { None } else { Some(code) };
    assert_eq!(got.err().map(|error| error.code()), wanted);
}

#[test]
fn streams_refuse_by_name() {
    let server = Server::new(&[]);
    let (service, sampling) = sampler(&server);
    let prompt = || tokens("he");
    for (wrong, words) in [
        (params().n_samples(2), "n_samples is 2"),
        (params().prompt_logprobs(true), "prompt_logprobs"),
        (params().max_tokens(0), "max_tokens"),
        (params().top_p(2.0), "top_p"),
        (params().silence_ms(u64::MAX), "silence_ms"),
        (params().stop(Stop::Texts(vec!["a\0".into()])), "stop string"),
    ] {
        let mut stream = sampling.stream(prompt(), wrong);
        let error = stream.wait_next().unwrap().unwrap_err();
        assert!(error.code() == Code::EINVAL && error.message().contains(words), "{:?}", error);
        assert!(stream.wait_next().is_none());
        assert_eq!(stream.finish().wait().unwrap_err().message(), error.message());
    }
    let error = sampling.sample(prompt(), params().silence_ms(1)).wait().unwrap_err();
    assert!(error.message().contains("silence_ms"), "{:?}", error);
    service.close().wait().unwrap();
    let mut stream = sampling.stream(prompt(), params());
    assert_eq!(stream.wait_next().unwrap().unwrap_err().code(), Code::ECLOSED);
    assert_eq!(stream.explain(), "it has ended");
}

/// What a server does to a stream, and what the program gets.
#[test]
fn streams_break() {
    for (fault, code, words) in [
        ("cut_body/stream_sample:400", Code::ECONN, "tokens"),
        ("404/stream_sample", Code::EUNSUPPORTED, ""),
        ("422/stream_sample", Code::EREQUEST, ""),
    ] {
        let server = Server::new(&["--faults", fault]);
        let (_service, sampling) = sampler(&server);
        let mut stream = sampling.stream(tokens("he"), params().max_tokens(200).stop(Stop::Never));
        let mut n = 0;
        let error = loop {
            match stream.wait_next().unwrap() {
                Ok(_) => n += 1,
                Err(error) => break error,
            }
        };
        println!("{} {} {:?}", fault, n, error);
        assert!(error.code() == code && error.message().contains(words), "{:?}", error);
        assert_eq!(n > 0, code == Code::ECONN);
    }
}

/// Says on which thread it was called, and may panic.
struct Named(Mutex<mpsc::Sender<Option<String>>>, bool);
impl Wake for Named {
    fn wake(self: Arc<Self>) {
        let name = std::thread::current().name().map(String::from);
        let _ = self.0.lock().unwrap().send(name);
        if self.1 {
            panic!("a waker of a test");
        }
    }
}

#[test]
fn stream_wakers_run_on_the_thread_of_results() {
    let server = Server::new(&[]);
    let (_service, sampling) = sampler(&server);
    for panics in [false, true] {
        let (send, receive) = mpsc::channel();
        let waker = Waker::from(Arc::new(Named(Mutex::new(send), panics)));
        let mut stream = sampling.stream(tokens("he"), params());
        let mut n = 0;
        while n < 4 {
            match stream.poll_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(token)) => assert_eq!(token.unwrap().index, n),
                Poll::Ready(None) => break,
                Poll::Pending => {
                    let name = receive.recv_timeout(LIMIT).unwrap();
                    assert_eq!(name.as_deref(), Some("tnk results"));
                    continue;
                }
            }
            n += 1;
        }
        assert_eq!(n, 3);
    }
}
