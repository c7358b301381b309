//! Installs, upgrades and removes the package, and builds it.

use std::time::{Duration, Instant};

use haul_testing::{fixtures, root};

use super::{Block, Operator};
use crate::program;

/// The maximum time from the installation to the first PUT. An idle machine needs much less.
const FIRST_PUT_MAX: Duration = Duration::from_mins(5);

/// Stands for cargo: a build for release takes minutes. It copies the program under test, and for
/// the static target compiles a program that does nothing.
const CARGO: &str = r#"#!/bin/sh
set -e
echo "cargo $*" >>/opt/calls
case $* in
"build --profile dist") install -D /opt/haul target/dist/haul ;;
"build --profile dist --target x86_64-unknown-linux-musl")
    mkdir -p target/x86_64-unknown-linux-musl/dist
    echo 'int main(void) { return 0; }' |
        gcc -static -x c - -o target/x86_64-unknown-linux-musl/dist/haul
    ;;
*) exit 2 ;;
esac
"#;

/// Stands for docker, which needs a service that this machine cannot run.
const DOCKER: &str = "#!/bin/sh\necho \"docker $*\" >>/opt/calls\n";

/// Installs the package, measures the time to the first PUT, and builds the package.
pub(super) fn debian_package(operator: &Operator, blocks: Vec<Block>) {
    let [install, build] = blocks.try_into().unwrap();
    operator.download("1", "haul_0.1.0-1_amd64.deb");
    let started = Instant::now();
    operator.run(&install);
    let installed = started.elapsed();
    operator.machine.run(&["systemctl", "start", "haul-serve"]);
    assert_eq!(operator.put("first", ""), 200);
    assert_eq!(operator.put("first/object", "content"), 200);
    let elapsed = started.elapsed();
    println!(
        "the package was installed after {installed:?}, and had the first PUT after {elapsed:?}"
    );
    assert!(elapsed < FIRST_PUT_MAX, "{elapsed:?}");
    operator.machine.run(&["systemctl", "stop", "haul-serve"]);

    let machine = &operator.machine;
    std::fs::copy(program::path(), machine.path("/opt/haul")).unwrap();
    for (name, content) in [("cargo", CARGO), ("docker", DOCKER)] {
        let path = format!("/usr/local/bin/{name}");
        machine.write(&path, content);
        machine.run(&["chmod", "755", &path]);
    }
    let sources = root().canonicalize().unwrap();
    let sources = sources.display();
    let environment = "export HAUL_DEB_COMPRESSOR=none";
    let build = build.text();
    machine.shell(&format!("{environment}; cd {sources}; {build}test -s haul_0.1.0-1_*.deb"));
}

/// Prepares the directory of the image, and records the calls of docker.
pub(super) fn container(operator: &Operator, blocks: Vec<Block>) {
    let [build] = blocks.try_into().unwrap();
    let sources = root().canonicalize().unwrap();
    let sources = sources.display();
    let machine = &operator.machine;
    machine.shell(&format!(
        "cd {sources}; {}
        image/haul
        for name in Dockerfile data ca-certificates.crt; do test -e image/$name; done",
        build.text()
    ));
    let calls = machine.text("/opt/calls");
    for call in
        ["docker build -t haul image\n", "docker run -p 9000:9000 -p 9001:9001 -v haul-data:"]
    {
        assert!(calls.contains(call), "{calls}");
    }
}

/// Records the calls of kubectl and helm, which need a cluster.
pub(super) fn kubernetes(operator: &Operator, blocks: Vec<Block>) {
    let [install] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    for name in ["kubectl", "helm"] {
        let path = format!("/usr/local/bin/{name}");
        machine.write(&path, format!("#!/bin/sh\necho \"{name} $*\" >>/opt/calls\n"));
        machine.run(&["chmod", "755", &path]);
    }
    machine.shell(&install.text());
    let calls = machine.text("/opt/calls");
    assert!(calls.contains("kubectl create secret generic haul-keys "), "{calls}");
    let (_, call) = calls.split_once("helm install haul ").unwrap();
    let chart = call.split(' ').next().unwrap();
    assert!(root().join(chart).join("Chart.yaml").is_file(), "{chart}");
}

/// Upgrades a service with the store of a released version, removes the package, and purges it.
/// Then installs it again.
pub(super) fn upgrade_and_remove(operator: &Operator, blocks: Vec<Block>) {
    let [block] = blocks.try_into().unwrap();
    let [upgrade, remove, purge] = block.lines.try_into().unwrap();
    let machine = &operator.machine;
    for (version, dir) in fixtures::release_fixtures(&file_store(), "store") {
        println!("the store is that of version {version}");
        machine.shell("systemctl stop haul-serve; rm -rf /var/lib/haul/store");
        fixtures::copy_files(&dir.path().join("closed"), &machine.path("/var/lib/haul/store"));
        machine.shell("chown -R haul:haul /var/lib/haul/store; systemctl start haul-serve");
    }
    let process = || machine.run(&["systemctl", "show", "--property", "MainPID", "haul-serve"]);
    let before = process();
    operator.download("2", "haul_0.2.0-1_amd64.deb");
    operator.shell(&upgrade, 0);
    assert!(machine.run(&["dpkg", "--status", "haul"]).contains("-2\n"));
    assert_ne!(process(), before, "the upgrade restarts the service");
    assert_released_objects(operator);

    operator.shell(&remove, 0);
    let state = machine.output(&["systemctl", "is-active", "haul-serve"]);
    assert_eq!(state.stdout, b"inactive\n");
    assert!(!machine.has("/usr/bin/haul") && machine.has("/etc/haul/serve.toml"));
    let printed = operator.shell(&purge, 0);
    assert!(!machine.has("/etc/haul/serve.toml"));
    let delete = printed.lines().find_map(|line| line.split_once("to delete them: "));
    assert!(delete.is_some() && machine.has("/var/lib/haul/store"), "{printed}");

    operator.shell("sudo apt install ./haul_0.2.0-1_amd64.deb", 0);
    machine.run(&["systemctl", "start", "haul-serve"]);
    assert_released_objects(operator);
}

/// The directory of the crate with the stores of released versions.
fn file_store() -> String {
    root().join("crates/file-store").display().to_string()
}

/// Asserts the newest content of an object of `crates/file-store/tests/all/releases.rs`, and that
/// the store accepts others.
fn assert_released_objects(operator: &Operator) {
    let (status, body) = operator.get("bucket/key-050");
    assert!(status == 200 && body.starts_with("object 290 "), "{status} {body}");
    assert_eq!(operator.get("bucket/key-001").0, 404, "it was deleted");
    assert_eq!(operator.put("bucket/new", "content"), 200);
}
