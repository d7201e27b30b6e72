// SPDX-License-Identifier: MIT
//! Services and clients against a local server.
use std::sync::Arc;
use std::thread;

use crate::support::*;
use tnk::*;

#[test]
fn trains_and_samples() {
    let server = Server::new(&[]);
    let service = server.service();
    let training = train(&service);
    let data: Arc<[Datum]> = vec![datum()].into();
    let first = training.forward(data.clone(), "cross_entropy").wait().unwrap();
    let mut last = None;
    for _ in 0..20 {
        let pass = training.forward_backward(data.clone(), "cross_entropy");
        let step = training.optim_step(adam());
        last = Some(pass.wait().unwrap());
        assert!(step.wait().unwrap().get("step").is_some());
    }
    let last = last.unwrap();
    assert!(last.loss().unwrap() < first.loss().unwrap() / 2.0, "{:?} {:?}", first, last);
    assert_eq!(last.len(), 1);
    assert_eq!(last.output(0, "logprobs").unwrap().len(), 4);
    assert_eq!(last.output(0, "none"), None);
    assert_eq!(last.output(1, "logprobs"), None);
    assert_eq!(last.metrics().get("loss:sum"), last.loss());

    let sampling = training.save_weights_and_get_sampling().wait().unwrap();
    let samples =
        sampling.sample(tokens("he"), params().n_samples(2).prompt_logprobs(true)).wait().unwrap();
    assert_eq!(samples.len(), 2);
    for one in samples.iter() {
        assert_eq!(one.tokens().len(), 3);
        assert_eq!(one.logprobs().unwrap().len(), 3);
        assert_eq!(one.stop_reason(), StopReason::Length);
    }
    let logprobs = sampling.compute_logprobs(tokens("he")).wait().unwrap();
    assert!(logprobs[0].is_nan());
    assert_eq!(logprobs[1], samples.prompt_logprobs().unwrap()[1]);
    let other = service
        .create_sampling(SamplingOptions::exported(&sampling.export().unwrap()))
        .wait()
        .unwrap();
    let again = other.sample(tokens("he"), params()).wait().unwrap();
    assert_eq!(again.first().tokens(), samples.first().tokens());
    // The weights of samples outlive everything else.
    service.close().wait().unwrap();
    drop((service, training, sampling, other));
    assert_eq!(again.first().tokens().len(), 3);
}

/// Each way to stop, and what it gives.
#[test]
fn stops() {
    let server = Server::new(&[]);
    let sampling = server
        .service()
        .create_sampling(SamplingOptions::base_model("tnk/byte-lm"))
        .wait()
        .unwrap();
    let whole =
        sampling.sample(tokens("he"), params().max_tokens(20).stop(Stop::Never)).wait().unwrap();
    let whole = whole.first().tokens().to_vec();
    assert_eq!(whole.len(), 20);
    let cut = whole[5];
    let wanted = &whole[..=whole.iter().position(|token| *token == cut).unwrap()];
    let got = sampling
        .sample(tokens("he"), params().max_tokens(20).stop(Stop::Tokens(vec![cut])))
        .wait()
        .unwrap();
    assert_eq!(got.first().tokens(), wanted);
    assert_eq!(got.first().stop_reason(), StopReason::Stop);
}

#[test]
fn saves_and_restores() {
    let server = Server::new(&[]);
    let service = server.service();
    let training = train(&service);
    let pass = training.forward_backward(vec![datum()], "cross_entropy");
    let step = training.optim_step(adam());
    let saved = training.save_state("kept", SaveOptions::new()).wait().unwrap();
    pass.wait().unwrap();
    step.wait().unwrap();
    assert_eq!((saved.n_steps, saved.n_passes), (1, 1));
    let loss = |of: &Training| of.forward(vec![datum()], "cross_entropy").wait().unwrap().loss();
    let wanted = loss(&training);
    let restored = service.restore(&saved.path, true).wait().unwrap();
    assert_eq!(loss(&restored), wanted);
    let fresh = train(&service);
    assert_ne!(loss(&fresh), wanted);
    fresh.load_state(&saved.path, false).wait().unwrap();
    assert_eq!(loss(&fresh), wanted);

    let info = training.info().unwrap();
    assert_eq!(info.lora_rank, Some(8));
    let run = info.model_id.unwrap();
    let weights = training
        .save_weights_for_sampler("weights", SaveOptions::new().ttl_seconds(7200))
        .wait()
        .unwrap();
    let listed = service.run_checkpoints(&run).wait().unwrap();
    let mut paths: Vec<&str> = listed.iter().map(|one| one.path.as_str()).collect();
    let mut wanted = vec![saved.path.as_str(), weights.path.as_str()];
    paths.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(paths, wanted);
    service.delete_checkpoint(&saved.path).wait().unwrap();
    assert_eq!(service.run_checkpoints(&run).wait().unwrap().len(), 1);
    assert!(service.create_sampling(SamplingOptions::model_path(&weights.path)).wait().is_ok());
    assert!(training.ready().wait().is_ok());

    let models = service.capabilities().wait().unwrap();
    assert!(models.iter().any(|one| one.name.as_deref() == Some("tnk/byte-lm")));
    service.health().wait().unwrap();
    assert!(service.dump().unwrap().starts_with('{'));
    assert_eq!(version(), "0.1.0");
}

/// Chunks of tokens are the same input as one list, and shapes are checked.
#[test]
fn reads_data() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let loss = |datum: Datum| {
        training.forward(vec![datum], "cross_entropy").wait().map(|pass| pass.loss())
    };
    let targets: Vec<i64> = vec![101, 108, 108, 111];
    let whole = loss(datum()).unwrap();
    let chunks = vec![Chunk::Tokens(tokens("he")), Chunk::Tokens(tokens("ll"))];
    assert_eq!(loss(Datum::new(chunks).with("target_tokens", targets.clone())).unwrap(), whole);
    let shaped = Tensor::from(targets.clone()).shaped(&[4, 1]);
    let weights = Tensor::from(vec![1.0f32; 4]).shaped(&[4, 1]);
    let two =
        loss(Datum::new(tokens("hell")).with("target_tokens", shaped).with("weights", weights))
            .unwrap();
    assert_eq!(two, whole);
    let halves = loss(datum().with("weights", vec![0.5f32; 4])).unwrap().unwrap();
    assert!((halves * 2.0 - whole.unwrap()).abs() < 1e-4);
    for (wrong, what) in [
        (datum().with("weights", vec![1.0f32; 3]), "weights"),
        (datum().with("weights", Tensor::from(vec![1.0f32; 4]).shaped(&[2, 1])), "weights"),
        (datum().with("weights", Tensor::from(vec![1.0f32; 4]).shaped(&[1; 9])), "weights"),
        (datum().with("we\0ights", vec![1.0f32; 4]), "loss input"),
        (Datum::new(Vec::<Chunk>::new()), "datum 0"),
    ] {
        let error = loss(wrong).unwrap_err();
        assert_eq!(error.code(), Code::EINVAL, "{}", error);
        assert!(error.message().contains(what), "{}", error);
    }
    // The library does not know how many tokens are too few.
    for few in [&[7][..], &[]] {
        assert_eq!(loss(Datum::next_token(few)).unwrap_err().code(), Code::EFAILED);
    }
    let error = training.forward(Vec::new(), "cross_entropy").wait().unwrap_err();
    assert_eq!(error.code(), Code::EINVAL);
    let ppo = Loss::new("ppo").setting("clip_low_threshold", 0.8);
    assert!(loss(datum()).is_ok());
    let error = training.forward(vec![datum()], ppo).wait().unwrap_err();
    assert!(error.message().contains("logprobs"), "{}", error);
}

#[test]
fn errors_by_code() {
    let server = Server::new(&[]);
    let service = server.service();
    let training = train(&service);
    training.save_state("taken", SaveOptions::new()).wait().unwrap();
    let closed = server.service();
    closed.close().wait().unwrap();
    let canceled = training.optim_step(AdamParams::new());
    canceled.cancel();
    let far = || Service::options().base_url(&server.url);
    let table: Vec<(Code, &str, Error)> = vec![
        (
            Code::EINVAL,
            "learning_rate",
            training.optim_step(adam().learning_rate(f64::NAN)).wait().unwrap_err(),
        ),
        (Code::EINVAL, "NUL", training.save_state("a\0b", SaveOptions::new()).wait().unwrap_err()),
        (
            Code::EFAILED,
            "no-such",
            service.create_lora(LoraOptions::new("no-such")).wait().unwrap_err(),
        ),
        (
            Code::ENOTFOUND,
            "",
            service.delete_checkpoint("tinker://none/weights/x").wait().unwrap_err(),
        ),
        (
            Code::EFAILED,
            "taken",
            training.save_state("taken", SaveOptions::new()).wait().unwrap_err(),
        ),
        (Code::ECREDENTIAL, "key", far().api_key("wrong").open().unwrap_err()),
        (
            Code::EINVAL,
            "ftp",
            Service::options().api_key(KEY).base_url("ftp://x").open().unwrap_err(),
        ),
        (Code::EINVAL, "NUL", far().api_key("a\0b").open().unwrap_err()),
        (Code::EINVAL, "", far().api_key(KEY).header("Host", "x").open().unwrap_err()),
        (Code::ECLOSED, "closed", closed.health().wait().unwrap_err()),
        (Code::ECLOSED, "closed", closed.dump().unwrap_err()),
        (Code::ECANCELED, "cancel", canceled.wait().unwrap_err()),
    ];
    for (code, words, error) in &table {
        println!("{:?}", error);
        assert_eq!(error.code(), *code, "{}", error);
        assert!(error.message().contains(words), "{}: {}", words, error);
        assert!(!error.message().contains(KEY));
        assert_eq!(format!("{}", error), error.message());
        assert!(format!("{:?}", error).starts_with(code.name()));
    }
    let missing = &table[3].2;
    assert_eq!((missing.http_status(), missing.ran()), (Some(404), Ran::No));
    assert_eq!(table[0].2.ran(), Ran::No);
    assert_eq!((table[4].2.category(), table[3].2.category()), (Category::User, Category::Unknown));
    assert!(table[2].2.attempts() > 0);
    assert!(Code::ERATE.is_retryable() && !Code::EINVAL.is_retryable());
    assert_eq!(Code::EINVAL.value(), -50001);
}

#[test]
fn threads_share_a_client() {
    let server = Server::new(&[]);
    let service = server.service();
    let sampling =
        service.create_sampling(SamplingOptions::base_model("tnk/byte-lm")).wait().unwrap();
    let work = |sampling: Sampling| {
        let started: Vec<_> = (0..40).map(|_| sampling.sample(tokens("he"), params())).collect();
        started
            .into_iter()
            .map(|one| one.wait().unwrap().first().tokens().to_vec())
            .collect::<Vec<_>>()
    };
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let sampling = sampling.clone();
            thread::spawn(move || work(sampling))
        })
        .collect();
    let wanted = work(sampling.clone());
    for one in threads {
        assert_eq!(one.join().unwrap(), wanted);
    }
    // A result may be read on several threads, and dropped on another one.
    let samples = Arc::new(sampling.sample(tokens("he"), params()).wait().unwrap());
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let samples = samples.clone();
            thread::spawn(move || samples.first().tokens().to_vec())
        })
        .collect();
    drop(samples);
    for one in readers {
        assert_eq!(one.join().unwrap(), wanted[0]);
    }
}

#[test]
fn awaits_in_tokio() {
    let server = Server::new(&[]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let service = server.service();
        let training = service.create_lora(lora()).await.unwrap();
        let pass = training.forward_backward(vec![datum()], "cross_entropy");
        let step = training.optim_step(adam());
        let (pass, step) = tokio::join!(pass, step);
        assert!(pass.unwrap().loss().unwrap() > 0.0 && step.is_ok());
        let sampling = training.save_weights_and_get_sampling().await.unwrap();
        let tasks: Vec<_> = (0..1000)
            .map(|seed| tokio::spawn(sampling.sample(tokens("he"), params().seed(seed))))
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap().first().tokens().len(), 3);
        }
        // A task may end with the last handle of a service.
        tokio::spawn(async move { sampling.sample(tokens("he"), params()).await.unwrap() })
            .await
            .unwrap();
        service.close().await.unwrap();
    });
    let silent = Server::silent();
    runtime.block_on(async {
        let service = silent.service();
        let operation = service.create_lora(lora());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), operation)
            .await
            .is_err());
    });
}

/// What the documentation says of types.
#[test]
fn types_are_send_and_sync() {
    fn both<T: Send + Sync + 'static>() {}
    both::<Service>();
    both::<Training>();
    both::<Sampling>();
    both::<Ledger>();
    both::<Operation<Training>>();
    both::<Operation<Samples>>();
    both::<TokenStream>();
    both::<Token>();
    both::<Pass>();
    both::<Samples>();
    both::<Error>();
    both::<ServiceOptions>();
}

#[test]
fn ledgers_record_and_resume() {
    let server = Server::new(&[]);
    let folder = std::env::temp_dir().join(format!("tnk-rust-{}", std::process::id()));
    let service = server.service();
    let ledger = service.open_ledger(&folder, LedgerOptions::new().every_steps(2)).wait().unwrap();
    assert_eq!(ledger.resume().wait().unwrap_err().code(), Code::ENOTFOUND);
    assert_eq!(ledger.last().unwrap(), None);
    let training = train(&service);
    assert!(!ledger.due(&training).unwrap());
    for _ in 0..2 {
        training.forward_backward(vec![datum()], "cross_entropy").detach();
        training.optim_step(adam()).detach();
    }
    assert!(ledger.due(&training).unwrap());
    let entry = ledger.save(&training, LedgerSave::new().cursor("two").batch(2)).wait().unwrap();
    assert_eq!((entry.n_steps, entry.batch, entry.cursor.as_deref()), (2, Some(2), Some("two")));
    let twice = service.open_ledger(&folder, LedgerOptions::new()).wait().unwrap_err();
    assert_eq!(twice.code(), Code::ECONFLICT);
    let other = ledger.close();
    ledger.close().wait().unwrap();
    other.wait().unwrap();
    ledger.close().wait().unwrap();
    assert_eq!(ledger.last().unwrap_err().code(), Code::ECLOSED);
    assert_eq!(ledger.save(&training, LedgerSave::new()).wait().unwrap_err().code(), Code::ECLOSED);
    let again = service.open_ledger(&folder, LedgerOptions::new()).wait().unwrap();
    assert_eq!(again.last().unwrap().unwrap().cursor.as_deref(), Some("two"));
    let resumed = again.resume().wait().unwrap();
    assert_eq!(again.resumed().unwrap().unwrap().n_steps, 2);
    let loss = |of: &Training| of.forward(vec![datum()], "cross_entropy").wait().unwrap().loss();
    assert_eq!(loss(&resumed), loss(&training));
    let last =
        again.save(&resumed, LedgerSave::new().is_final(true).with_sampler(true)).wait().unwrap();
    assert!(last.is_final && last.sampler_path.is_some());
    assert_eq!(again.entries().unwrap().len(), 2);
    service.close().wait().unwrap();
    assert_eq!(again.entries().unwrap_err().code(), Code::ECLOSED);
    std::fs::remove_dir_all(folder).unwrap();
}
