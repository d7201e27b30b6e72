// SPDX-License-Identifier: MIT
// Finds the installed libraries. A static library is linked after
// PKG_CONFIG_ALL_STATIC=1, see the documentation of the crate pkg-config.
use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut names = vec!["tnk"];
    for (feature, name) in [
        ("CARGO_FEATURE_TOKENIZERS", "tnk-tokenizers"),
        ("CARGO_FEATURE_CHAT", "tnk-chat"),
        ("CARGO_FEATURE_GATEWAY", "tnk-gateway"),
    ] {
        if env::var_os(feature).is_some() {
            names.push(name);
        }
    }
    for name in names {
        if let Err(error) = pkg_config::Config::new().atleast_version("0.1").probe(name) {
            eprintln!("{} is not installed, or pkg-config does not find it.", name);
            eprintln!("Set PKG_CONFIG_PATH to the folder of {}.pc.\n{}", name, error);
            std::process::exit(1);
        }
    }
}
