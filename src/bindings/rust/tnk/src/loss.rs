// SPDX-License-Identifier: MIT
//! Loss functions with their settings.
use std::ffi::CString;
use std::ptr::null;

use tnk_sys::*;

use crate::error::Result;
use crate::text::c_string;

/// The value of a setting of a [`Loss`]. Made from `f64` and `&str`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Setting::Number(number)
    }
}
impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Setting::Text(text.into())
    }
}

/// A loss function: its name, such as "cross_entropy", and its settings.
///
/// A `&str` becomes one without settings. The known losses have types of their own, which become
/// a `Loss` too:
///
/// | loss | inputs that it needs | inputs that it may have |
/// |---|---|---|
/// | [`CrossEntropy`] | `target_tokens` | `weights` |
/// | [`ImportanceSampling`], [`Dro`] | `target_tokens`, `logprobs`, `advantages` | `weights` |
/// | [`Ppo`], [`Cispo`] | the same | `weights`, `clip_low_threshold`, `clip_high_threshold` |
/// | [`Gspo`] | the same | the same, `sequence_ratio_mask` |
///
/// The methods of [`Datum`](crate::Datum) have the names of the inputs. A pass fails with
/// [`Code::EINVAL`](crate::Code::EINVAL) and the name of the input if one is missing, or if a
/// known loss does not read it. A loss that is not listed is sent unchanged, with all its
/// inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    name: String,
    settings: Vec<(String, Setting)>,
}

impl Loss {
    /// A loss function without settings.
    pub fn new(name: &str) -> Self {
        Loss { name: name.into(), settings: Vec::new() }
    }

    /// Add a setting, such as "clip_low_threshold". The service rejects settings that the loss
    /// does not have.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl Into<Setting>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

impl From<&str> for Loss {
    fn from(name: &str) -> Self {
        Loss::new(name)
    }
}

/// A type for each known loss.
macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident = $text:literal { $($(#[$note:meta])* $setting:ident;)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $name {
                $($setting: Option<f64>,)*
            }

            impl $name {
                /// All settings have the defaults of the service.
                pub fn new() -> Self {
                    Self::default()
                }

                $(
                    $(#[$note])*
                    #[must_use]
                    pub fn $setting(mut self, value: f64) -> Self {
                        self.$setting = Some(value);
                        self
                    }
                )*
            }

            impl From<$name> for Loss {
                #[allow(unused_variables)]
                fn from(loss: $name) -> Loss {
                    let settings: &[(&str, Option<f64>)] =
                        &[$((stringify!($setting), loss.$setting)),*];
                    let set = settings
                        .iter()
                        .filter_map(|(name, value)| Some((name.to_string(), (*value)?.into())));
                    Loss { name: $text.into(), settings: set.collect() }
                }
            }
        )*
    };
}

losses! {
    /// Cross entropy, for supervised training.
    CrossEntropy = "cross_entropy" {}
    /// Importance sampling: policy gradients with the ratio of the probabilities.
    ImportanceSampling = "importance_sampling" {}
    /// Proximal policy optimization: the ratio of the probabilities is clipped.
    Ppo = "ppo" {
        /// The lower bound of the ratio. Default of the service: 0.8.
        clip_low_threshold;
        /// The upper bound of the ratio. Default of the service: 1.2.
        clip_high_threshold;
    }
    /// CISPO: importance sampling with a clipped weight.
    Cispo = "cispo" {
        /// The lower bound of the ratio.
        clip_low_threshold;
        /// The upper bound of the ratio.
        clip_high_threshold;
    }
    /// GSPO: the ratio of whole sequences is clipped.
    Gspo = "gspo" {
        /// The lower bound of the ratio.
        clip_low_threshold;
        /// The upper bound of the ratio.
        clip_high_threshold;
    }
    /// Direct reward optimization.
    Dro = "dro" {
        /// The weight of the quadratic term. Default of the service: 0.05.
        beta;
    }
}

/// A loss in C.
pub(crate) struct LossArgs {
    name: CString,
    settings: Vec<tnk_loss_setting_t>,
    _texts: Vec<CString>,
}

impl LossArgs {
    pub fn new(loss: &Loss) -> Result<LossArgs> {
        let mut made = LossArgs {
            name: c_string("the name of the loss", &loss.name)?,
            settings: Vec::with_capacity(loss.settings.len()),
            _texts: Vec::new(),
        };
        for (name, value) in &loss.settings {
            let key = c_string("the name of a setting", name)?;
            let mut to = tnk_loss_setting_t { name: key.as_ptr(), number: 0.0, text: null() };
            made._texts.push(key);
            match value {
                Setting::Number(number) => to.number = *number,
                Setting::Text(text) => {
                    let text = c_string(&format!("the setting {}", name), text)?;
                    to.text = text.as_ptr();
                    made._texts.push(text);
                }
            }
            made.settings.push(to);
        }
        Ok(made)
    }

    pub fn set(&self, options: &mut tnk_pass_options_t) {
        options.loss_fn = self.name.as_ptr();
        options.settings = self.settings.as_ptr();
        options.n_settings = self.settings.len();
    }
}
