// SPDX-License-Identifier: MIT
//! Loss functions, their settings and their inputs.
use crate::support::*;
use tnk::*;

/// Sampled tokens with ratios on both sides of each bound: exp(difference to `logprobs`).
fn sampled(training: &Training, differences: &[f32; 4]) -> (Datum, Vec<f32>) {
    let pass = training.forward(vec![datum()], CrossEntropy::new()).wait().unwrap();
    let now = pass.output(0, "logprobs").unwrap().to_vec();
    let then: Vec<f32> = now.iter().zip(differences).map(|(now, by)| now - by).collect();
    let datum = Datum::sampled(
        tokens("hell"),
        vec![101, 108, 108, 111],
        then,
        ADVANTAGES.map(|one| one as f32),
    );
    (datum, now)
}

const ADVANTAGES: [f64; 4] = [1.0, -2.0, 0.5, -1.0];
const DIFFERENCES: [f32; 4] = [0.5, -0.5, 0.05, 1.0];

fn loss_of(training: &Training, datum: Datum, loss: impl Into<Loss>) -> Result<f64> {
    training.forward(vec![datum], loss).wait().map(|pass| pass.loss().unwrap())
}

fn ratios() -> [f64; 4] {
    DIFFERENCES.map(|difference| f64::from(difference).exp())
}

/// The loss of PPO by its definition.
fn ppo(low: f64, high: f64) -> f64 {
    let one = |i: usize| {
        let ratio = ratios()[i];
        -(ratio * ADVANTAGES[i]).min(ratio.clamp(low, high) * ADVANTAGES[i])
    };
    (0..4).map(one).sum()
}

/// The loss of CISPO by its definition.
fn cispo(low: f64, high: f64, logprobs: &[f32]) -> f64 {
    (0..4).map(|i| -ratios()[i].clamp(low, high) * ADVANTAGES[i] * f64::from(logprobs[i])).sum()
}

/// Each known loss with and without its settings gives the loss of its definition.
#[test]
fn losses_are_computed() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let (datum, logprobs) = sampled(&training, &DIFFERENCES);
    let importance = (0..4).map(|i| -ratios()[i] * ADVANTAGES[i]).sum::<f64>();
    let table: Vec<(&str, Loss, f64)> = vec![
        ("importance_sampling", ImportanceSampling::new().into(), importance),
        ("importance_sampling", "importance_sampling".into(), importance),
        ("ppo", Ppo::new().into(), ppo(0.8, 1.2)),
        ("ppo low", Ppo::new().clip_low_threshold(0.2).into(), ppo(0.2, 1.2)),
        ("ppo high", Ppo::new().clip_high_threshold(2.0).into(), ppo(0.8, 2.0)),
        ("ppo by name", Loss::new("ppo").setting("clip_high_threshold", 2.0), ppo(0.8, 2.0)),
        (
            "cispo",
            Cispo::new().clip_low_threshold(0.7).clip_high_threshold(1.5).into(),
            cispo(0.7, 1.5, &logprobs),
        ),
    ];
    for (name, loss, wanted) in table {
        let got = loss_of(&training, datum.clone(), loss).unwrap();
        assert!((got - wanted).abs() < 1e-3, "{}: {} instead of {}", name, got, wanted);
    }
    // Their sums depend on more than this test knows, but on each setting.
    let pairs: Vec<(&str, Loss, Loss)> = vec![
        ("dro", Dro::new().into(), Dro::new().beta(0.5).into()),
        (
            "gspo low",
            Gspo::new().into(),
            Gspo::new().clip_low_threshold(1.3).clip_high_threshold(1.4).into(),
        ),
        ("gspo high", Gspo::new().into(), Gspo::new().clip_high_threshold(0.9).into()),
    ];
    for (name, first, second) in pairs {
        let first = loss_of(&training, datum.clone(), first).unwrap();
        assert_ne!(first, loss_of(&training, datum.clone(), second).unwrap(), "{}", name);
    }
}

/// Each loss input of one number for each position has its effect.
#[test]
fn loss_inputs_are_read() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let (datum, _) = sampled(&training, &DIFFERENCES);
    let table: Vec<(&str, Loss, Datum)> = vec![
        ("weights", Ppo::new().into(), datum.clone().weights([1.0, 0.0, 1.0, 1.0])),
        ("clip_low_threshold", Ppo::new().into(), datum.clone().clip_low_threshold([0.1; 4])),
        ("clip_high_threshold", Ppo::new().into(), datum.clone().clip_high_threshold([9.0; 4])),
        (
            "sequence_ratio_mask",
            Gspo::new().into(),
            datum.clone().sequence_ratio_mask([1.0, 0.0, 0.0, 0.0]),
        ),
    ];
    for (name, loss, with) in table {
        let without = loss_of(&training, datum.clone(), loss.clone()).unwrap();
        assert_ne!(loss_of(&training, with, loss).unwrap(), without, "{}", name);
    }
    let pass = training.forward_backward(vec![datum], Dro::new().beta(0.1));
    let step = training.optim_step(adam());
    assert!(pass.wait().unwrap().loss().is_some());
    step.wait().unwrap();
}

/// An input that is missing or too much, and a setting that is wrong, are named.
#[test]
fn losses_refuse_by_name() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let target = || datum().logprobs([0.0; 4]);
    let whole = || target().advantages([1.0; 4]);
    let mut table: Vec<(Loss, Datum, Code, &str)> = vec![
        (CrossEntropy::new().into(), target(), Code::EINVAL, "logprobs"),
        (Dro::new().into(), whole().clip_low_threshold([0.1; 4]), Code::EINVAL, "clip_low"),
        (Ppo::new().into(), whole().sequence_ratio_mask([1.0; 4]), Code::EINVAL, "sequence_ratio"),
        (Ppo::new().into(), whole().weights([1.0; 3]), Code::EINVAL, "weights"),
        (Ppo::new().clip_low_threshold(f64::NAN).into(), whole(), Code::EINVAL, "clip_low"),
        (Dro::new().beta(-1.0).into(), whole(), Code::EREQUEST, "beta"),
        (Loss::new("dro").setting("clip", 1.0), whole(), Code::EREQUEST, "clip"),
        (Loss::new("dro").setting("beta", "much"), whole(), Code::EREQUEST, "beta"),
        (Loss::new("dro").setting("beta", "a\0b"), whole(), Code::EINVAL, "the setting beta"),
        (Loss::new("dro").setting("a\0b", 1.0), whole(), Code::EINVAL, "name of a setting"),
        (
            Loss::new("dro").setting("beta", 1.0).setting("beta", 2.0),
            whole(),
            Code::EINVAL,
            "twice",
        ),
        (Loss::new("unknown"), whole(), Code::EREQUEST, "unknown"),
        (Loss::new("a\0b"), whole(), Code::EINVAL, "name of the loss"),
    ];
    for loss in [
        ImportanceSampling::new().into(),
        Ppo::new().into(),
        Cispo::new().into(),
        Gspo::new().into(),
        Loss::from(Dro::new()),
    ] {
        table.push((loss.clone(), datum(), Code::EINVAL, "logprobs"));
        table.push((loss, target(), Code::EINVAL, "advantages"));
    }
    let no_target = Datum::new(tokens("hell"));
    table.push((CrossEntropy::new().into(), no_target, Code::EINVAL, "target_tokens"));
    for (loss, datum, code, words) in table {
        let error = loss_of(&training, datum, loss.clone()).unwrap_err();
        assert!(error.message().contains(words), "{:?}: {:?}", loss, error);
        assert_eq!(error.code(), code, "{:?}: {:?}", loss, error);
    }
}
