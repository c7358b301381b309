//! The fuzz targets with libFuzzer, which selects inputs that reach new code. `HAUL_FUZZ_TARGET` is
//! the name of the target to run. Without it, the program prints the names of all targets.
#![no_main]

use std::sync::OnceLock;

use haul_fuzz::{Target, find};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

/// Selects the target, or ends the program.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for users")]
fn select() {
    let Some(name) = std::env::var_os("HAUL_FUZZ_TARGET") else {
        haul_fuzz::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(0);
    };
    match name.to_str().and_then(find) {
        Some(target) => drop(TARGET.set(target)),
        None => {
            eprintln!("HAUL_FUZZ_TARGET: there is no target {}", name.display());
            std::process::exit(2);
        }
    }
}

fuzz_target!(init: select(), |data: &[u8]| {
    if let Some(target) = TARGET.get() {
        target(data);
    }
});
