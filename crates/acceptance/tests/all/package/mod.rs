//! Builds the Debian package, installs it, uses the installed service, upgrades and removes it.

mod booted;
mod calls;

use std::path::{Path, PathBuf};
use std::process::Command;

use haul_testing::{disk_dir, run};

use crate::machine::{self, Machine, Service};
use crate::program::{self, root};

const SERVICES: [&str; 3] = ["haul-serve.service", "haul-files.service", "haul-relay.service"];
const CONFIG: &str = "/etc/haul/serve.toml";

/// Builds the package from the program under test, with the given revision.
pub(crate) fn build(dir: &Path, revision: &str) -> PathBuf {
    let mut command = Command::new(root().join("packaging/build-deb"));
    command.arg(program::path()).arg(dir);
    command.env("HAUL_DEB_REVISION", revision).env("HAUL_DEB_COMPRESSOR", "none");
    run(&mut command).unwrap_or_else(|error| panic!("{error}")).trim().into()
}

/// Lets the service listen on free ports, as an administrator changes the file.
fn change_config(machine: &Machine) {
    let free = "s/^#listen = .*/listen = \"127.0.0.1:0\"/; s/^#admin = .*/admin = \"127.0.0.1:0\"/";
    machine.run(&["sed", "-i", free, CONFIG]);
}

fn serve(machine: &Machine) -> Service {
    Service::start(machine::command(machine, "haul-serve.service", &[]))
}

#[test]
fn data_survive_installation_upgrade_removal_and_purge() {
    let Some(machine) = Machine::new() else { return };
    let packages = disk_dir();
    let (first, second) = (build(packages.path(), "1"), build(packages.path(), "2"));
    machine.install(&first);
    check_content(&machine);
    check_units(&machine);
    change_config(&machine);

    let service = serve(&machine);
    assert_eq!(service.request("PUT", "/bucket", b"").0, 200);
    assert_eq!(service.request("PUT", "/bucket/key", b"value").0, 200);
    service.stop();
    let owner = machine.run(&["stat", "--format", "%U %a", "/var/lib/haul", "/var/lib/haul/store"]);
    assert_eq!(owner.lines().next(), Some("haul 700"));
    assert!(owner.lines().all(|line| line.starts_with("haul ")), "{owner}");

    machine.install(&second);
    assert!(machine.run(&["dpkg", "--status", "haul"]).contains("-2\n"));
    assert!(machine.text(CONFIG).contains("\nlisten = \"127.0.0.1:0\"\n"), "the file is kept");
    let service = serve(&machine);
    assert_eq!(service.request("GET", "/bucket/key", b""), (200, b"value".to_vec()));
    service.stop();

    machine.run(&["dpkg", "--remove", "haul"]);
    assert!(!machine.has("/usr/bin/haul") && machine.has(CONFIG));
    let purged = machine.run(&["dpkg", "--purge", "haul"]);
    assert!(!machine.has(CONFIG));
    assert!(purged.contains("/var/lib/haul") && purged.contains("are kept"), "{purged}");

    machine.install(&second);
    change_config(&machine);
    let service = serve(&machine);
    assert_eq!(service.request("GET", "/bucket/key", b""), (200, b"value".to_vec()));
    service.stop();
}

fn check_content(machine: &Machine) {
    for path in [
        "/usr/share/man/man1/haul.1.gz",
        "/usr/share/man/man1/haul-serve.1.gz",
        "/usr/share/bash-completion/completions/haul",
        "/usr/share/zsh/vendor-completions/_haul",
        "/usr/share/fish/vendor_completions.d/haul.fish",
        "/usr/share/doc/haul/docs/operations.md",
        "/usr/share/doc/haul/changelog.gz",
        "/var/lib/haul",
    ] {
        assert!(machine.has(path), "{path}");
    }
    let copyright = machine.text("/usr/share/doc/haul/copyright");
    assert!(copyright.contains("\n Permission is hereby granted"), "{copyright}");
    let printed =
        machine.run(&["haul", "serve", "--data", "/var/lib/haul/store", "--print-config"]);
    assert_eq!(machine.text(CONFIG), printed);
    assert!(printed.contains("\ndata = \"/var/lib/haul/store\"\n"), "{printed}");
    let listed = machine.run(&["dpkg-query", "--show", "--showformat=${Conffiles}", "haul"]);
    for name in ["serve", "files", "relay"] {
        assert!(listed.contains(&format!("/etc/haul/{name}.toml")), "{listed}");
    }
    // Each configuration is complete: its values and names are valid.
    for name in ["serve", "files", "relay"] {
        let file = format!("/etc/haul/{name}.toml");
        let printed = machine.run(&["haul", name, "--config", &file, "--print-config"]);
        assert_eq!(printed, machine.text(&file));
    }
}

/// The maximum exposure of a service that `systemd-analyze security` may compute, times 10.
const EXPOSURE_MAX: &str = "--threshold=19";

fn check_units(machine: &Machine) {
    let mut verify = vec!["systemd-analyze", "--man=no", "verify"];
    verify.extend(SERVICES);
    verify.extend(["haul-serve.socket", "haul-files.socket", "haul-relay.socket"]);
    machine.run(&verify);
    for unit in SERVICES {
        machine.run(&["systemd-analyze", "security", "--offline=true", EXPOSURE_MAX, unit]);
    }
}
