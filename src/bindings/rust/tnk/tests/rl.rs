// SPDX-License-Identifier: MIT
//! Arithmetic for reinforcement learning, by its definitions.
use tnk::rl::*;
use tnk::Code;

const SAMPLED: [f32; 4] = [-1.0, -2.0, -0.5, -3.0];
const TRAINED: [f32; 4] = [-0.75, -2.5, -0.5, -2.0];
const WEIGHTS: [f32; 4] = [1.0, 0.0, 2.0, 1.0];
const ADVANTAGES: [f32; 4] = [1.0, -2.0, 0.5, -1.0];

fn near(found: &[f32], wanted: &[f64]) {
    let is_near = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-5;
    let all = found.len() == wanted.len() && found.iter().zip(wanted).all(is_near);
    assert!(all, "{:?} instead of {:?}", found, wanted);
}

fn is(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-5, "{} instead of {}", found, wanted);
}

/// log p - log q.
fn log_ratios() -> [f64; 4] {
    [0.25, -0.5, 0.0, 1.0]
}

#[test]
fn advantages_are_computed() {
    let rewards = [1.0, 3.0, 0.0, 0.0];
    let of = |kind| group_advantages(&rewards, 2, kind).unwrap();
    near(&of(Advantage::Centered), &[-1.0, 1.0, 0.0, 0.0]);
    near(&of(Advantage::Normalized), &[-1.0, 1.0, 0.0, 0.0]);
    near(&of(Advantage::LeaveOneOut), &[-2.0, 2.0, 0.0, 0.0]);
    near(&group_advantages(&[], 3, Advantage::Centered).unwrap(), &[]);
    for group_size in [0, 3] {
        let error = group_advantages(&rewards, group_size, Advantage::Centered).unwrap_err();
        assert_eq!(error.code(), Code::EINVAL);
        assert!(error.message().contains("4 rewards"), "{:?}", error);
    }
    near(&discounted_sums(&[1.0, 2.0, 4.0], 0.5), &[3.0, 4.0, 4.0]);
}

#[test]
fn divergences_are_computed() {
    let k3 = log_ratios().map(|r| r.exp() - 1.0 - r);
    near(&kl_tokens(&SAMPLED, &TRAINED, Kl::K1).unwrap(), &log_ratios().map(|r| -r));
    near(&kl_tokens(&SAMPLED, &TRAINED, Kl::K2).unwrap(), &log_ratios().map(|r| r * r / 2.0));
    near(&kl_tokens(&SAMPLED, &TRAINED, Kl::K3).unwrap(), &k3);
    is(kl(&SAMPLED, &TRAINED, None, Kl::K3).unwrap(), k3.iter().sum::<f64>() / 4.0);
    is(kl(&SAMPLED, &TRAINED, Some(&WEIGHTS), Kl::K3).unwrap(), (k3[0] + k3[3]) / 4.0);
    assert!(kl(&[], &[], None, Kl::K1).unwrap().is_nan());
    near(&ratios(&SAMPLED, &TRAINED).unwrap(), &log_ratios().map(f64::exp));
}

#[test]
fn drift_is_computed() {
    let found = drift(&SAMPLED, &TRAINED, Some(&WEIGHTS)).unwrap();
    assert_eq!(found.n, 3);
    is(found.log_ratio, 1.25 / 4.0);
    is(found.max_abs_log_ratio, 1.0);
    is(found.max_ratio, 1f64.exp());
    is(found.min_ratio, 1.0);
    let same = drift(&SAMPLED, &SAMPLED, None).unwrap();
    is(same.ratio, 1.0);
    is(same.effective_tokens, 4.0);
    is(effective_sample_size(&[0.0, 0.0, f32::NEG_INFINITY]), 2.0);
    is(sampled_entropy(&SAMPLED, None).unwrap(), 6.5 / 4.0);
    is(sampled_entropy(&SAMPLED, Some(&WEIGHTS)).unwrap(), 5.0 / 4.0);
    is(entropy(&[0.5f32.ln(), 0.5f32.ln()]), 2f64.ln());
    is(norm(&[3.0, 4.0]), 5.0);
}

/// Each term has its value, and its gradient is added.
#[test]
fn terms_of_losses_are_computed() {
    let ratios = log_ratios().map(f64::exp);
    let a = ADVANTAGES.map(f64::from);
    let w = WEIGHTS.map(f64::from);
    let sum = |term: &dyn Fn(usize) -> f64| (0..4).map(|i| w[i] * term(i)).sum::<f64>() * 0.5;
    type Term = fn(&mut Tokens<'_>) -> f64;
    let table: Vec<(Term, f64)> = vec![
        (|t| t.importance_sampling(&ADVANTAGES, 0.5).unwrap(), sum(&|i| -ratios[i] * a[i])),
        (
            |t| t.ppo(&ADVANTAGES, 0.8, 1.2, 0.5).unwrap(),
            sum(&|i| -(ratios[i] * a[i]).min(ratios[i].clamp(0.8, 1.2) * a[i])),
        ),
        (
            |t| t.cispo(&ADVANTAGES, 0.8, 1.2, 0.5).unwrap(),
            sum(&|i| -ratios[i].clamp(0.8, 1.2) * a[i] * f64::from(TRAINED[i])),
        ),
        (|t| t.kl_penalty(Kl::K1, 0.5), sum(&|i| log_ratios()[i])),
    ];
    for (term, wanted) in table {
        let tokens = || Tokens::new(&TRAINED, &SAMPLED).unwrap().weights(&WEIGHTS).unwrap();
        is(term(&mut tokens()), wanted);
        let mut gradients = [[0f32; 4], [10.0; 4]];
        for gradient in &mut gradients {
            is(term(&mut tokens().gradient(gradient).unwrap()), wanted);
        }
        assert!(gradients[0].iter().any(|one| *one != 0.0) && gradients[0][1] == 0.0);
        near(&gradients[1], &gradients[0].map(|one| f64::from(one) + 10.0));
    }
}

#[test]
fn dpo_is_computed() {
    let (mut up, mut down) = ([0f32; 4], [0f32; 4]);
    let mut chosen = Tokens::new(&TRAINED, &SAMPLED).unwrap().gradient(&mut up).unwrap();
    let mut rejected = Tokens::new(&SAMPLED, &SAMPLED).unwrap().gradient(&mut down).unwrap();
    let (loss, margin) = dpo(&mut chosen, &mut rejected, 0.1, 1.0);
    is(margin, 0.075);
    is(loss, (1.0 + (-0.075f64).exp()).ln());
    assert!(up[0] < 0.0 && down[0] > 0.0, "{:?} {:?}", up, down);
}

/// Slices of different lengths are refused, and the error names the slice.
#[test]
fn lengths_are_checked() {
    let short = [0f32; 3];
    let mut gradient = [0f32; 3];
    let mut tokens = Tokens::new(&TRAINED, &SAMPLED).unwrap();
    let table: Vec<(&str, tnk::Result<()>)> = vec![
        ("trained", kl(&SAMPLED, &short, None, Kl::K1).map(drop)),
        ("weights", kl(&SAMPLED, &TRAINED, Some(&short), Kl::K1).map(drop)),
        ("trained", kl_tokens(&SAMPLED, &short, Kl::K1).map(drop)),
        ("trained", ratios(&SAMPLED, &short).map(drop)),
        ("trained", drift(&SAMPLED, &short, None).map(drop)),
        ("weights", drift(&SAMPLED, &TRAINED, Some(&short)).map(drop)),
        ("weights", sampled_entropy(&SAMPLED, Some(&short)).map(drop)),
        ("reference", Tokens::new(&TRAINED, &short).map(drop)),
        ("weights", Tokens::new(&TRAINED, &SAMPLED).unwrap().weights(&short).map(drop)),
        ("gradient", Tokens::new(&TRAINED, &SAMPLED).unwrap().gradient(&mut gradient).map(drop)),
        ("advantages", tokens.importance_sampling(&short, 1.0).map(drop)),
        ("advantages", tokens.ppo(&short, 0.8, 1.2, 1.0).map(drop)),
        ("advantages", tokens.cispo(&short, 0.0, 4.0, 1.0).map(drop)),
    ];
    for (name, result) in table {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::EINVAL);
        assert_eq!(error.message(), format!("{} has 3 elements instead of 4", name));
    }
}
