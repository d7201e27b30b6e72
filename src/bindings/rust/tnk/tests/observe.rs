// SPDX-License-Identifier: MIT
//! What a service reports to functions of the program.
use std::sync::{mpsc, Arc, Mutex};

use crate::support::*;
use tnk::*;

fn options(url: &str) -> ServiceOptions {
    Service::options().base_url(url).api_key(KEY).proxy("")
}

fn thread_name() -> Option<String> {
    std::thread::current().name().map(String::from)
}

/// An address that nobody listens on.
fn nowhere() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", socket.local_addr().unwrap())
}

/// A server that begins late, and one that does not respond before the service closes.
#[test]
fn queue_states_are_reported() {
    for begins in [true, false] {
        let url = nowhere();
        let (send, receive) = mpsc::channel();
        let send = Mutex::new(send);
        let service = options(&url)
            .on_queue_state(move |event| {
                let _ = send.lock().unwrap().send((event.clone(), thread_name()));
            })
            .open()
            .unwrap();
        let created = service.create_lora(lora());
        let mut server = None;
        for wanted in [QueueState::Unreachable, QueueState::Active] {
            let (event, name) = receive.recv_timeout(LIMIT).unwrap();
            assert_eq!(event.state, wanted, "{:?}", event);
            assert_eq!(name.as_deref(), Some("tnk results"));
            assert_eq!(event.client, "127.0.0.1");
            assert!(!event.reason.is_empty());
            if !begins {
                break;
            }
            let port = url.rsplit(':').next().unwrap();
            server = server.or_else(|| Some(Server::new(&["--port", port])));
        }
        service.close().wait().unwrap();
        let code = created.wait().err().map(|error| error.code());
        assert!(begins || code == Some(Code::ECLOSED), "{:?}", code);
        assert!(receive.recv().is_err(), "nothing follows the end");
    }
}

/// A server that begins anew has lost the session and the model.
#[test]
fn recoveries_are_reported() {
    for recovers in [false, true] {
        let server = Server::new(&[]);
        let url = server.url.clone();
        let port = url.rsplit(':').next().unwrap().to_string();
        let (send, receive) = mpsc::channel();
        let (send_state, states) = mpsc::channel();
        let (send, send_state) = (Mutex::new(send), Mutex::new(send_state));
        let service = options(&url)
            .recovery(recovers)
            .recovery_attempts(5)
            .recovery_delay_ms(1)
            .on_recovery(move |event| {
                let _ = send.lock().unwrap().send((event.clone(), thread_name()));
            })
            .on_queue_state(move |event| {
                let _ = send_state.lock().unwrap().send(event.state);
            })
            .open()
            .unwrap();
        let training = train(&service);
        training.go_on().unwrap();
        let model = training.info().unwrap().model_id.unwrap();
        drop(server);
        let _server = Server::new(&["--port", &port]);
        let error = training.optim_step(adam()).wait_timeout(LIMIT).unwrap_err();
        assert_eq!(error.code(), Code::ESESSION, "{:?}", error);
        if !recovers {
            assert_eq!(states.recv_timeout(LIMIT).unwrap(), QueueState::SessionLost);
            assert_eq!(training.optim_step(adam()).wait().unwrap_err().code(), Code::ESESSION);
            training.go_on().unwrap();
            service.close().wait().unwrap();
            assert_eq!(training.go_on().unwrap_err().code(), Code::ECLOSED);
            assert!(receive.try_recv().is_err());
            continue;
        }
        let mut seen = Vec::new();
        loop {
            let (event, name) = receive.recv_timeout(LIMIT).unwrap();
            println!("{:?}", event);
            assert_eq!(name.as_deref(), Some("tnk results"));
            let one = (event.what, event.state);
            seen.push((event, one.0, one.1));
            if one == (Recovered::Training, RecoveryState::Completed) {
                break;
            }
        }
        for what in [Recovered::Session, Recovered::Training] {
            let states: Vec<RecoveryState> =
                seen.iter().filter(|one| one.1 == what).map(|one| one.2).collect();
            assert_eq!(states.first(), Some(&RecoveryState::Detected), "{:?}", what);
            assert!(states.contains(&RecoveryState::Started), "{:?}", what);
            assert_eq!(states.last(), Some(&RecoveryState::Completed), "{:?}", what);
        }
        let last = &seen.last().unwrap().0;
        assert_eq!((last.n_steps, last.path.as_deref()), (0, None));
        let now = training.info().unwrap().model_id.unwrap();
        assert_ne!(now, model);
        training.ready().wait_timeout(LIMIT).unwrap();
        training.optim_step(adam()).wait_timeout(LIMIT).unwrap();
    }
}

/// Each level has its lines and those of more severe levels, without secrets.
#[test]
fn log_lines_have_levels() {
    let mut n_before = 0;
    for level in [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
    {
        // Each failure is a line.
        let server = Server::new(&["--faults", "503@1-3:ms=1"]);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let service = options(&server.url)
            .log(level, move |line| kept.lock().unwrap().push(line.clone()))
            .open()
            .unwrap();
        train(&service).optim_step(adam()).wait().unwrap();
        service.close().wait().unwrap();
        let lines = lines.lock().unwrap();
        assert!(lines.iter().all(|line| line.level <= level), "{:?}", lines);
        assert!(lines.iter().all(|line| !line.message.contains(KEY) && !line.subject.is_empty()));
        println!("{:?} {:?}", level, lines);
        assert!(lines.len() >= n_before);
        n_before = lines.len();
    }
    assert!(n_before > 0);
}

/// What a function does when it is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Locks,
    Panics,
    Calls,
    Waits,
    Closes,
}

/// A function is never called inside of a call, and may do anything.
#[test]
fn functions_are_called_later() {
    for act in [Act::Locks, Act::Panics, Act::Calls, Act::Waits, Act::Closes] {
        println!("{:?}", act);
        let server = Server::new(&["--faults", "503/healthz"]);
        let own: Arc<Mutex<Option<Service>>> = Arc::default();
        let n_calls = Arc::new(Mutex::new(0));
        let (mine, count) = (own.clone(), n_calls.clone());
        let service = options(&server.url)
            .log(LogLevel::Trace, move |_| {
                let service = mine.lock().unwrap().clone().unwrap();
                *count.lock().unwrap() += 1;
                match act {
                    Act::Locks => (),
                    Act::Panics => panic!("a function of a test"),
                    Act::Calls => assert!(service.dump().is_ok()),
                    Act::Waits => {
                        let error = service.capabilities().wait().unwrap_err();
                        assert_eq!(error.code(), Code::EREENTRANT);
                    }
                    Act::Closes => service.close().detach(),
                }
                *count.lock().unwrap() += 100;
            })
            .open()
            .unwrap();
        *own.lock().unwrap() = Some(service.clone());
        let health = {
            // A call that called the function itself would wait for this lock forever.
            let _locked = n_calls.lock().unwrap();
            let health = service.health();
            while service.dump().map_or(false, |dump| dump.contains("\"retries\":0,")) {
                std::thread::yield_now();
            }
            health
        };
        while *n_calls.lock().unwrap() == 0 {
            std::thread::yield_now();
        }
        // Results still come.
        let models = service.capabilities().wait_timeout(LIMIT);
        assert!(models.is_ok() || act == Act::Closes, "{:?}", models);
        drop(health);
        service.close().wait().unwrap();
        *own.lock().unwrap() = None;
        let n = *n_calls.lock().unwrap();
        assert_eq!(n % 100 == n / 100, act != Act::Panics, "{}", n);
    }
}

/// How a service ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Close,
    CloseTwice,
    Drop,
    DropPending,
    NotOpened,
}

/// However a service ends, no function is called afterwards, and what it owns is dropped.
#[test]
fn functions_end_with_their_service() {
    let server = Server::new(&[]);
    let silent = Server::silent();
    for end in [End::Close, End::CloseTwice, End::Drop, End::DropPending, End::NotOpened] {
        for has_other in [false, true] {
            println!("{:?} {}", end, has_other);
            // With another service the threads go on.
            let _other = if has_other { Some(server.service()) } else { None };
            let owned = Arc::new(());
            let (a, b, c) = (owned.clone(), owned.clone(), owned.clone());
            let url = if end == End::DropPending { &silent.url } else { &server.url };
            let made = options(url)
                .api_key(if end == End::NotOpened { "wrong" } else { KEY })
                .on_queue_state(move |_| drop(a.clone()))
                .on_recovery(move |_| drop(b.clone()))
                .log(LogLevel::Trace, move |_| drop(c.clone()))
                .open();
            match end {
                End::NotOpened => drop(made.unwrap_err()),
                End::Drop => drop((train(made.as_ref().unwrap()), made)),
                End::DropPending => {
                    let service = made.unwrap();
                    let pending = service.create_lora(lora());
                    drop(service);
                    drop(pending);
                }
                End::Close | End::CloseTwice => {
                    let service = made.unwrap();
                    train(&service);
                    let first = service.close();
                    if end == End::CloseTwice {
                        service.close().wait().unwrap();
                    }
                    first.wait().unwrap();
                    assert_eq!(Arc::strong_count(&owned), 1, "the service has closed");
                }
            }
            while Arc::strong_count(&owned) > 1 {
                std::thread::yield_now();
            }
        }
    }
}

/// Lines that a slow function cannot take are dropped, and counted.
#[test]
fn log_lines_are_bounded() {
    let server = Server::new(&["--faults", "503/healthz"]);
    let (release, blocked) = mpsc::channel::<()>();
    let (blocked, lines) = (Mutex::new(blocked), Arc::new(Mutex::new((0usize, 0usize))));
    let seen = lines.clone();
    let service = options(&server.url)
        .log(LogLevel::Trace, move |line| {
            // Until the sender is dropped.
            let _ = blocked.lock().unwrap().recv();
            let mut seen = seen.lock().unwrap();
            if line.subject == "log" {
                let n = line.message.split(' ').next().unwrap();
                seen.1 += n.parse::<usize>().unwrap();
            } else {
                seen.0 += 1;
            }
        })
        .open()
        .unwrap();
    let operations: Vec<_> = (0..2_000).map(|_| service.health()).collect();
    let has_failed = |dump: String| {
        let words = dump.split("\"retries\":").nth(1).unwrap();
        let digits = words.split(',').next().unwrap();
        digits.parse::<usize>().unwrap() >= 2_000
    };
    while !has_failed(service.dump().unwrap()) {
        std::thread::yield_now();
    }
    drop(operations);
    drop(release);
    service.close().wait().unwrap();
    let (n, n_dropped) = *lines.lock().unwrap();
    println!("{} {}", n, n_dropped);
    assert!(n_dropped > 0 && n >= 1_000, "{} {}", n, n_dropped);
}
