//! Compares the system calls of the services with the filters of their units.

use haul_testing::{disk_dir, eventually};

use super::{build, change_config};
use crate::machine::{self, Machine, Service, settings};

/// System calls that the filters may refuse: `cachestat` (Linux 6.5), which systemd 252 and some
/// versions of strace do not know. The kernel refuses it as well, with the same error, for files that
/// the process neither owns nor may write.
const OPTIONAL: [&str; 2] = ["cachestat", "syscall_0x1c3"];

/// The sizes of the files and objects: in memory, in one read, and large.
const SIZES: [(&str, usize); 3] = [("small", 100), ("medium", 1 << 20), ("big", 5 << 20)];

#[test]
fn filters_of_the_units_allow_every_system_call() {
    let Some(machine) = Machine::new() else { return };
    let packages = disk_dir();
    machine.install(&build(packages.path(), "1"));
    change_config(&machine);
    let serve = traced(&machine, "serve");
    assert_eq!(serve.request("PUT", "/bucket", b"").0, 200);
    for (key, bytes) in SIZES {
        let (path, body) = (format!("/bucket/{key}"), vec![7; bytes]);
        assert_eq!(serve.request("PUT", &path, &body).0, 200);
        for _ in 0..4 {
            assert_eq!(serve.request("GET", &path, b""), (200, body.clone()));
        }
    }
    assert_eq!(serve.request("DELETE", "/bucket/big", b"").0, 204);
    serve.stop();
    check_calls(&machine, "serve");

    machine.run(&["mkdir", "--parents", "/srv/www"]);
    for (name, bytes) in SIZES {
        let write = format!("head --bytes {bytes} /dev/urandom > /srv/www/{name}");
        machine.run(&["sh", "-c", &write]);
    }
    machine.run(&[
        "sed",
        "-i",
        "s/^#listen = .*/listen = \"127.0.0.1:0\"/",
        "/etc/haul/files.toml",
    ]);
    let files = traced(&machine, "files");
    let to = &files.address;
    let addresses =
        format!("s/^listen = .*/listen = [\"127.0.0.1:0\"]/; s/^to = .*/to = [\"{to}\"]/");
    machine.run(&["sed", "-i", &addresses, "/etc/haul/relay.toml"]);
    let relay = traced(&machine, "relay");
    for (name, bytes) in SIZES {
        for server in [&files, &relay, &relay, &files] {
            let (status, body) = server.request("GET", &format!("/{name}"), b"");
            assert_eq!((status, body.len()), (200, bytes));
        }
    }
    relay.stop();
    files.stop();
    check_calls(&machine, "files");
    check_calls(&machine, "relay");
}

/// Starts a service, and traces its system calls.
fn traced(machine: &Machine, name: &str) -> Service {
    let trace = format!("/run/{name}.trace");
    // The server is the child of the test, and strace a process beside it.
    let strace = ["strace", "--daemonize", "--follow-forks", "--output", &trace];
    Service::start(machine::command(machine, &format!("haul-{name}.service"), &strace))
}

/// Asserts that the filter of the unit allows each system call of the trace.
fn check_calls(machine: &Machine, name: &str) {
    let trace = format!("/run/{name}.trace");
    let is_complete = || machine.text(&trace).contains("+++ exited with 0 +++");
    eventually("the trace is complete", is_complete);
    let allowed = allowed_calls(machine, &format!("haul-{name}.service"));
    let calls = server_calls(&machine.text(&trace));
    assert!(calls.len() > 30, "{name}: {calls:?}");
    let is_needed = |call: &&String| !OPTIONAL.contains(&call.as_str());
    let needed = calls.iter().filter(is_needed);
    let refused: Vec<_> = needed.filter(|call| !allowed.contains(call)).collect();
    assert!(refused.is_empty(), "the filter of haul-{name} refuses {refused:?}");
}

/// Returns the names of the system calls in a trace after the program was executed.
fn server_calls(trace: &str) -> Vec<String> {
    let after = trace.split_once("execve(\"/usr/bin/haul\"").map_or("", |(_, after)| after);
    let name = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (name, _) = call.trim_start().split_once('(')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && !name.is_empty()).then(|| name.to_owned())
    };
    let mut names: Vec<_> = after.lines().skip(1).filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the system calls that the filter of a unit allows: those of its first line, without those
/// of its second line.
fn allowed_calls(machine: &Machine, unit: &str) -> Vec<String> {
    let filters = settings(machine, unit, "SystemCallFilter");
    let [allowed, refused] = filters.as_slice() else { panic!("{filters:?}") };
    let expand = |words: &str| -> Vec<String> {
        words.split_whitespace().flat_map(|word| expanded(machine, word)).collect()
    };
    let refused = expand(refused.strip_prefix('~').unwrap());
    // systemd always allows what the group @default contains.
    let all = expand(&format!("@default {allowed}"));
    all.into_iter().filter(|call| !refused.contains(call)).collect()
}

/// Returns the system calls of a group; a name is its only one.
fn expanded(machine: &Machine, word: &str) -> Vec<String> {
    if !word.starts_with('@') {
        return vec![word.to_owned()];
    }
    let text = machine.run(&["systemd-analyze", "syscall-filter", "--no-pager", word]);
    let lines = text.lines().skip(1).map(str::trim);
    let calls = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    calls.flat_map(|word| expanded(machine, word)).collect()
}
