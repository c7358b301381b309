//! Executes the commands that build and install Haul from its sources, in a fresh Debian system.

use haul_testing::skip;

use super::{build_directories, section};
use crate::machine::Machine;
use crate::program::root;

/// The section of `README.md` with the commands.
pub(super) const SECTION: &str = "Install";

/// A command of the section that is not executed, and the reason.
const NOT_EXECUTED: [(&str, &str); 1] =
    [("cargo test --workspace --no-fail-fast", "it runs this test; .ci/run executes it")];

/// Runs the installed cargo with the profile of this test, which needs no compilation: the release
/// profile takes minutes. The network is not used.
const CARGO: &str = r#"#!/bin/bash
arguments=()
for argument; do
    case $argument in
    --release) ;;
    install) arguments+=(install --debug --offline) ;;
    run) arguments+=(run --offline) ;;
    *) arguments+=("$argument") ;;
    esac
done
exec "$TOOLCHAIN/bin/cargo" "${arguments[@]}"
"#;

#[test]
#[ignore = "full: it compiles Haul in the machine, which takes minutes"]
fn commands_of_the_readme_install_haul_on_fresh_debian() {
    let Some(directories) = build_directories() else {
        return skip("cargo is not in a toolchain of its own");
    };
    // The programs are compiled before the machine has a copy of them.
    for program in ["haul", "haul-bench"] {
        println!("{}", haul_testing::program(program).display());
    }
    let Some(machine) = Machine::with(&directories.each_ref().map(|each| &**each)) else { return };
    let [sources, toolchain, libraries] = directories.map(|each| each.display().to_string());
    machine.write("/usr/local/bin/cargo", CARGO);
    machine.run(&["chmod", "755", "/usr/local/bin/cargo"]);
    // Other settings would require another compilation.
    let incremental = std::env::var("CARGO_INCREMENTAL").unwrap_or_else(|_| "1".to_owned());
    let settings = format!(
        "export CARGO_INCREMENTAL={incremental} RUSTFLAGS=\"{}\"\n\
         export TOOLCHAIN={toolchain} CARGO_HOME={libraries} PATH={toolchain}/bin:$PATH\n\
         PATH=/usr/local/bin:$PATH; cd {sources}\n",
        std::env::var("RUSTFLAGS").unwrap_or_default()
    );
    let run = |command: &str| machine.shell(&[&settings, command].concat());

    let [block] = section("README.md", SECTION).try_into().unwrap();
    let mut left: Vec<_> = NOT_EXECUTED.into_iter().collect();
    for line in &block.lines {
        let command = line.split('#').next().unwrap().trim();
        if let Some(at) = left.iter().position(|(other, _)| *other == command) {
            println!("not executed: {command}: {}", left.remove(at).1);
        } else if command.contains(" run ") {
            run(&format!(
                "{command} &
                until curl --silent --fail http://127.0.0.1:9001/health; do sleep 0.1; done
                curl --fail --request PUT http://127.0.0.1:9000/bucket
                kill $(pidof haul) && wait $!
                test -d haul-data"
            ));
        } else {
            run(command);
        }
    }
    assert!(left.is_empty(), "the page has no command {left:?}");
    let version = run(&format!("{libraries}/bin/haul --version"));
    assert_eq!(version, format!("haul {}\n", env!("CARGO_PKG_VERSION")));
    run(&format!("PATH={libraries}/bin:$PATH haul bench --help"));
    assert!(!root().join("haul-data").exists(), "the machine has a copy of the sources");
}
