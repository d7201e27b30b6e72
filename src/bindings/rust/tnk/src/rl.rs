// SPDX-License-Identifier: MIT
//! Arithmetic for reinforcement learning, on slices.
//!
//! `sampled` is the logprob of each sampled token under the sampler, and `trained` that of the
//! same token under the trained model. `weights`, at least 0, are the weights of the tokens;
//! None means 1 for each. Slices that belong together must have the same length. If they do not,
//! the error is [`Code::EINVAL`] and names the slice.
//!
//! [`Tokens`] has the terms of losses for
//! [`forward_backward_custom`](crate::Training::forward_backward_custom). Each returns its value
//! times a factor and adds the derivative of this product to the gradient.
use std::ptr::{null, null_mut};

use tnk_sys::*;

use crate::error::{Code, Error, Result};

/// Baseline and scale of a reward within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advantage {
    /// The reward less the mean of its group.
    Centered,
    /// The same, divided by the standard deviation of the group (GRPO).
    Normalized,
    /// The reward less the mean of the other rewards of its group (RLOO).
    LeaveOneOut,
}

/// Estimators of a KL divergence from sampled tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kl {
    /// Unbiased, high variance, can be negative.
    K1,
    /// Biased, low variance.
    K2,
    /// Unbiased, never negative.
    K3,
}

impl Kl {
    fn to_c(self) -> tnk_kl_t {
        match self {
            Kl::K1 => TNK_KL_K1,
            Kl::K2 => TNK_KL_K2,
            Kl::K3 => TNK_KL_K3,
        }
    }
}

fn same_length(name: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(Code::EINVAL, format!("{} has {} elements instead of {}", name, found, wanted)))
}

fn optional(name: &str, values: Option<&[f32]>, n: usize) -> Result<*const f32> {
    match values {
        None => Ok(null()),
        Some(values) => same_length(name, values.len(), n).map(|()| values.as_ptr()),
    }
}

/// The advantages of rewards in groups. The samples of one prompt form a group of `group_size`
/// adjacent rewards.
pub fn group_advantages(rewards: &[f32], group_size: usize, kind: Advantage) -> Result<Vec<f32>> {
    let mut advantages = vec![0.0; rewards.len()];
    let kind = match kind {
        Advantage::Centered => TNK_ADVANTAGE_CENTERED,
        Advantage::Normalized => TNK_ADVANTAGE_NORMALIZED,
        Advantage::LeaveOneOut => TNK_ADVANTAGE_LEAVE_ONE_OUT,
    };
    let err = unsafe {
        let to = advantages.as_mut_ptr();
        tnk_rl_group_advantages(to, rewards.as_ptr(), rewards.len(), group_size, kind)
    };
    if err == 0 {
        return Ok(advantages);
    }
    let text = format!("{} rewards are no groups of {}", rewards.len(), group_size);
    Err(Error::new(Code(err), text))
}

/// Discounted returns: each reward, plus `discount` times the return after it.
pub fn discounted_sums(rewards: &[f32], discount: f64) -> Vec<f32> {
    let mut sums = vec![0.0; rewards.len()];
    unsafe { tnk_rl_discounted_sums(sums.as_mut_ptr(), rewards.as_ptr(), rewards.len(), discount) };
    sums
}

/// The estimated KL(sampler, trained model), the mean per token. NaN without tokens.
pub fn kl(sampled: &[f32], trained: &[f32], weights: Option<&[f32]>, kind: Kl) -> Result<f64> {
    let n = sampled.len();
    same_length("trained", trained.len(), n)?;
    let weights = optional("weights", weights, n)?;
    Ok(unsafe { tnk_rl_kl(sampled.as_ptr(), trained.as_ptr(), weights, n, kind.to_c()) })
}

/// The same for each token, for example as a penalty on its reward.
pub fn kl_tokens(sampled: &[f32], trained: &[f32], kind: Kl) -> Result<Vec<f32>> {
    let n = sampled.len();
    same_length("trained", trained.len(), n)?;
    let mut out = vec![0.0; n];
    let to = out.as_mut_ptr();
    unsafe { tnk_rl_kl_tokens(to, sampled.as_ptr(), trained.as_ptr(), n, kind.to_c()) };
    Ok(out)
}

/// The importance ratio of each token: its probability under the trained model, divided by that
/// under the sampler.
pub fn ratios(sampled: &[f32], trained: &[f32]) -> Result<Vec<f32>> {
    let n = sampled.len();
    same_length("trained", trained.len(), n)?;
    let mut out = vec![0.0; n];
    unsafe { tnk_rl_ratios(out.as_mut_ptr(), sampled.as_ptr(), trained.as_ptr(), n) };
    Ok(out)
}

/// The distance between the trained model and the sampler: weighted means per token, except
/// where noted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Drift {
    /// The number of tokens with a weight above 0.
    pub n: usize,
    /// The logprob of the trained model less that of the sampler.
    pub log_ratio: f64,
    /// Its absolute value.
    pub abs_log_ratio: f64,
    /// The maximum of the absolute value, not a mean.
    pub max_abs_log_ratio: f64,
    /// The estimate [`Kl::K2`].
    pub k2: f64,
    /// The estimate [`Kl::K3`].
    pub k3: f64,
    /// The importance ratio; 1 if there is no drift.
    pub ratio: f64,
    /// The smallest ratio.
    pub min_ratio: f64,
    /// The largest ratio.
    pub max_ratio: f64,
    /// The variance of the ratios.
    pub ratio_variance: f64,
    /// The effective sample size of ratio times weight, at most `n`.
    pub effective_tokens: f64,
}

/// The drift between sampler and trainer.
pub fn drift(sampled: &[f32], trained: &[f32], weights: Option<&[f32]>) -> Result<Drift> {
    let n = sampled.len();
    same_length("trained", trained.len(), n)?;
    let weights = optional("weights", weights, n)?;
    let mut found: tnk_drift_t = unsafe { crate::text::init("tnk_drift_t\0") };
    Code::check(unsafe {
        tnk_rl_drift(&mut found, sampled.as_ptr(), trained.as_ptr(), weights, n)
    })?;
    Ok(Drift {
        n: found.n,
        log_ratio: found.log_ratio,
        abs_log_ratio: found.abs_log_ratio,
        max_abs_log_ratio: found.max_abs_log_ratio,
        k2: found.k2,
        k3: found.k3,
        ratio: found.ratio,
        min_ratio: found.min_ratio,
        max_ratio: found.max_ratio,
        ratio_variance: found.ratio_variance,
        effective_tokens: found.effective_tokens,
    })
}

/// The effective sample size of weights whose logarithms are given: from 1 to their number.
pub fn effective_sample_size(log_weights: &[f32]) -> f64 {
    unsafe { tnk_rl_effective_sample_size(log_weights.as_ptr(), log_weights.len()) }
}

/// The estimated entropy of the sampler per token, in nats.
pub fn sampled_entropy(sampled: &[f32], weights: Option<&[f32]>) -> Result<f64> {
    let weights = optional("weights", weights, sampled.len())?;
    Ok(unsafe { tnk_rl_sampled_entropy(sampled.as_ptr(), weights, sampled.len()) })
}

/// The entropy of one distribution, in nats.
pub fn entropy(logprobs: &[f32]) -> f64 {
    unsafe { tnk_rl_entropy(logprobs.as_ptr(), logprobs.len()) }
}

/// The Euclidean norm, for example of a gradient.
pub fn norm(values: &[f32]) -> f64 {
    unsafe { tnk_rl_norm(values.as_ptr(), values.len()) }
}

/// The tokens of one sequence, for the terms of a loss.
#[derive(Debug)]
pub struct Tokens<'a> {
    logprobs: &'a [f32],
    reference: &'a [f32],
    weights: Option<&'a [f32]>,
    gradient: Option<&'a mut [f32]>,
}

impl<'a> Tokens<'a> {
    /// Tokens with their logprobs under the trained model, and under the sampler or another
    /// reference. Without a gradient, only values are computed.
    pub fn new(logprobs: &'a [f32], reference: &'a [f32]) -> Result<Self> {
        same_length("reference", reference.len(), logprobs.len())?;
        Ok(Tokens { logprobs, reference, weights: None, gradient: None })
    }

    /// Set the weights. The other values of a token with weight 0 are ignored.
    pub fn weights(mut self, weights: &'a [f32]) -> Result<Self> {
        same_length("weights", weights.len(), self.logprobs.len())?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Set the gradient, to which derivatives are added.
    pub fn gradient(mut self, gradient: &'a mut [f32]) -> Result<Self> {
        same_length("gradient", gradient.len(), self.logprobs.len())?;
        self.gradient = Some(gradient);
        Ok(self)
    }

    fn to_c(&mut self) -> tnk_rl_tokens_t {
        tnk_rl_tokens_t {
            n: self.logprobs.len(),
            logprobs: self.logprobs.as_ptr(),
            reference: self.reference.as_ptr(),
            weights: self.weights.map_or(null(), <[f32]>::as_ptr),
            gradient: self.gradient.as_mut().map_or(null_mut(), |gradient| gradient.as_mut_ptr()),
        }
    }

    fn with(&mut self, advantages: &[f32]) -> Result<tnk_rl_tokens_t> {
        same_length("advantages", advantages.len(), self.logprobs.len())?;
        Ok(self.to_c())
    }

    /// The loss "importance_sampling": the sum of -ratio * advantage.
    pub fn importance_sampling(&mut self, advantages: &[f32], scale: f64) -> Result<f64> {
        let tokens = self.with(advantages)?;
        Ok(unsafe { tnk_rl_importance_sampling(&tokens, advantages.as_ptr(), scale) })
    }

    /// The loss "ppo" with bounds of the ratio; the service uses 0.8 and 1.2.
    pub fn ppo(&mut self, advantages: &[f32], low: f64, high: f64, scale: f64) -> Result<f64> {
        let tokens = self.with(advantages)?;
        Ok(unsafe { tnk_rl_ppo(&tokens, advantages.as_ptr(), low, high, scale) })
    }

    /// The loss "cispo" with bounds of the ratio; the service uses 0 and 4.
    pub fn cispo(&mut self, advantages: &[f32], low: f64, high: f64, scale: f64) -> Result<f64> {
        let tokens = self.with(advantages)?;
        Ok(unsafe { tnk_rl_cispo(&tokens, advantages.as_ptr(), low, high, scale) })
    }

    /// A penalty for the distance from the reference.
    pub fn kl_penalty(&mut self, kind: Kl, scale: f64) -> f64 {
        let tokens = self.to_c();
        unsafe { tnk_rl_kl_penalty(&tokens, kind.to_c(), scale) }
    }
}

/// DPO for a pair of sequences: (loss, margin). A margin above 0 means that the model prefers the
/// chosen one. The weights of prompt tokens must be 0.
pub fn dpo(
    chosen: &mut Tokens<'_>,
    rejected: &mut Tokens<'_>,
    beta: f64,
    scale: f64,
) -> (f64, f64) {
    let mut margin = 0.0;
    let (chosen, rejected) = (chosen.to_c(), rejected.to_c());
    let loss = unsafe { tnk_rl_dpo(&chosen, &rejected, beta, scale, &mut margin) };
    (loss, margin)
}
