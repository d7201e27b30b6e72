// SPDX-License-Identifier: MIT
//! Gateways: requests, keys, rewards, examples and ends.
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::*;
use tnk::chat::*;
use tnk::*;

const ASK: &str = "{\"model\": \"m\", \"max_tokens\": 4, \"messages\": [{\"role\": \"user\", \
                   \"content\": \"hello\"}]}";

fn options() -> GatewayOptions {
    GatewayOptions::new(&Tokenizer::bytes())
        .template(Template::plain().unwrap())
        .key("agents")
        .admin_key("admins")
}

fn base() -> SamplingOptions {
    SamplingOptions::base_model("tnk/byte-lm")
}

fn open(service: &Service) -> Gateway {
    let gateway = service.open_gateway(options()).unwrap();
    gateway.use_weights(base()).wait_timeout(LIMIT).unwrap();
    gateway
}

/// The status and the body of a chat completion.
fn ask(gateway: &Gateway, key: &str) -> (u16, String) {
    let address = gateway.address().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        address,
        key,
        ASK.len(),
        ASK
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_string())
}

#[test]
fn gateways_answer_and_record() {
    let server = Server::new(&[]);
    let service = server.service();
    let gateway = open(&service);
    assert_eq!(format!("{:?}", gateway), format!("Gateway {{ address: {:?} }}", gateway.address()));
    let (status, answer) = ask(&gateway, "agents");
    assert!(status == 200 && answer.contains("\"assistant\""), "{} {}", status, answer);
    assert_eq!(ask(&gateway, "other").0, 401);
    let shown = format!("{:?}", options().model("mine"));
    assert!(shown.contains("mine") && !shown.contains("agents") && !shown.contains("admins"));
    let stats = gateway.stats().unwrap();
    assert_eq!((stats.n_answered, stats.version, stats.n_under_way), (1, 1, 0), "{:?}", stats);
    assert!(stats.n_tokens > 0 && stats.n_tokens <= 4, "{:?}", stats);
    assert!(gateway.datums(None, true).unwrap().is_empty());
    gateway.reward("default", 0.5).unwrap();
    let datums = gateway.clone().datums(Some("default"), true).unwrap();
    assert!(datums.len() == 1 && datums[0].contains("advantages"), "{:?}", datums);
    let id = answer.split("\"id\":").nth(1).unwrap().split('"').nth(1).unwrap();
    gateway.reward_response(id, 0, -1.0).unwrap();
    // The weights change between requests.
    let training = train(&service);
    let saved = training.save_weights_for_sampler("gateway", SaveOptions::new().overwrite(true));
    let saved = match saved.wait() {
        Ok(saved) => saved,
        Err(_) => training.save_weights_for_sampler("gateway", SaveOptions::new()).wait().unwrap(),
    };
    gateway.use_weights(SamplingOptions::model_path(&saved.path)).wait().unwrap();
    assert_eq!(gateway.stats().unwrap().version, 2);
    assert_eq!(ask(&gateway, "agents").0, 200);
    gateway.leave().unwrap();
    gateway.drain().unwrap();
    gateway.close().wait_timeout(LIMIT).unwrap();
    service.close().wait_timeout(LIMIT).unwrap();
}

#[test]
fn gateways_have_keys() {
    let server = Server::new(&[]);
    let service = server.service();
    let gateway = open(&service);
    let made = gateway.create_key(KeyOptions::new().session("one").max_requests(2)).unwrap();
    assert_eq!(format!("{:?}", made), format!("GatewayKey {{ id: {:?} }}", made.id));
    assert_eq!(ask(&gateway, &made.key).0, 200);
    let keys = gateway.keys().unwrap();
    assert!(keys.len() == 1 && keys[0].contains("\"one\"") && keys[0].contains(&made.id));
    assert!(!keys[0].contains(&made.key));
    let next = gateway.rotate_key(&made.id).unwrap();
    assert_eq!((ask(&gateway, &made.key).0, ask(&gateway, &next).0), (401, 200));
    assert_eq!(ask(&gateway, &next).0, 403, "two requests are all");
    assert_eq!(gateway.datums(Some("one"), false).unwrap().len(), 2, "two conversations");
    gateway.revoke_key(&made.id).unwrap();
    assert_eq!(ask(&gateway, &next).0, 401);
    service.close().wait_timeout(LIMIT).unwrap();
}

#[test]
fn gateways_refuse_by_name() {
    let server = Server::new(&[]);
    let service = server.service();
    let gateway = open(&service);
    let keyless = service.open_gateway(GatewayOptions::new(&Tokenizer::bytes())).unwrap();
    let missing = SamplingOptions::model_path("tinker://none/sampler_weights/none");
    let table: Vec<(&str, Code, Result<()>)> = vec![
        ("the host", Code::EINVAL, service.open_gateway(options().host("a\0b")).map(drop)),
        ("", Code::EINVAL, service.open_gateway(options().host("nowhere")).map(drop)),
        ("", Code::EFILE, service.open_gateway(options().record("/nowhere/x")).map(drop)),
        ("no such session", Code::ENOTFOUND, gateway.datums(Some("none"), false).map(drop)),
        ("no such key", Code::ENOTFOUND, gateway.revoke_key("none")),
        ("no such key", Code::ENOTFOUND, gateway.rotate_key("none").map(drop)),
        ("no such response", Code::ENOTFOUND, gateway.reward_response("none", 0, 1.0)),
        ("reward", Code::EINVAL, gateway.reward("default", f64::NAN)),
        ("no key", Code::EINVAL, keyless.create_key(KeyOptions::new()).map(drop)),
        ("", Code::EINVAL, gateway.create_key(KeyOptions::new().session("a b")).map(drop)),
        ("", Code::EINVAL, gateway.create_key(KeyOptions::new().max_usd(1.0)).map(drop)),
    ];
    for (i, (words, code, result)) in table.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert_eq!(error.code(), code, "{}: {:?}", i, error);
        assert!(error.message().contains(words) && !error.message().is_empty(), "{:?}", error);
    }
    assert!(gateway.use_weights(missing).wait_timeout(LIMIT).is_err());
    assert_eq!(ask(&gateway, "agents").0, 200, "the earlier weights stay");
    gateway.close().wait_timeout(LIMIT).unwrap();
    assert_eq!(gateway.stats().unwrap_err().code(), Code::ECLOSED);
    assert_eq!(gateway.use_weights(base()).wait().unwrap_err().code(), Code::ECLOSED);
    gateway.close().wait_timeout(LIMIT).unwrap();
    drop(keyless);
    service.close().wait_timeout(LIMIT).unwrap();
    let error = service.open_gateway(options()).unwrap_err();
    assert_eq!(error.code(), Code::ECLOSED);
}

/// Gateway and service end in every order, with work and without.
#[test]
fn gateways_end_in_every_order() {
    let server = Server::new(&[]);
    let ends: [(&str, fn(Service, Gateway)); 7] = [
        ("gateway, service", |service, gateway| {
            gateway.close().wait_timeout(LIMIT).unwrap();
            service.close().wait_timeout(LIMIT).unwrap();
        }),
        ("service first", |service, gateway| {
            service.close().wait_timeout(LIMIT).unwrap();
            gateway.close().wait_timeout(LIMIT).unwrap();
        }),
        ("both at once", |service, gateway| {
            let (one, other) = (gateway.close(), service.close());
            other.wait_timeout(LIMIT).unwrap();
            one.wait_timeout(LIMIT).unwrap();
        }),
        ("twice", |service, gateway| {
            let all = [service.close(), gateway.close(), service.close(), gateway.close()];
            for one in all {
                one.wait_timeout(LIMIT).unwrap();
            }
        }),
        ("dropped, gateway first", |service, gateway| {
            drop(gateway);
            drop(service);
        }),
        ("dropped, service first", |service, gateway| {
            drop(service);
            assert!(gateway.stats().is_ok());
            drop(gateway);
        }),
        ("dropped closes", |service, gateway| {
            drop((service.close(), gateway.close()));
        }),
    ];
    for (name, end) in ends {
        for is_busy in [false, true] {
            let service = server.service();
            let gateway = service.open_gateway(options()).unwrap();
            let using = gateway.use_weights(base());
            let address = gateway.address().strip_prefix("http://").unwrap().to_string();
            if is_busy {
                using.detach();
            } else {
                using.wait_timeout(LIMIT).expect(name);
            }
            end(service, gateway);
            // The port is free once it has closed.
            while TcpStream::connect(&address).is_ok() {
                std::thread::yield_now();
            }
        }
    }
}
