//! Starts, configures and checks the services.

use haul_testing::eventually;
use haul_testing::tls::Authority;

use super::{Block, Operator};

/// Stands for the editor of the user: it inserts a file where `systemctl edit` expects the changes.
const EDITOR: &str = "#!/bin/sh
sed -i '/^### Anything between/r /srv/admin/changes' \"$1\"
";

/// A command of curl that trusts the certificate of the server and signs its requests.
const SIGNED: [&str; 6] =
    ["--cacert", "/srv/admin/ca.pem", "--user", "me:secret", "--aws-sigv4", "aws:amz:us-east-1:s3"];

/// Starts the service, gives it keys and a certificate, and lets systemd listen for it.
pub(super) fn services(operator: &Operator, blocks: Vec<Block>) {
    let [start, keys, config, sockets, changes] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    let printed = operator.run(&start);
    assert!(printed.contains("active (running)"), "{printed}");
    assert!(printed.contains("haul is ready: S3 on http://127.0.0.1:9000"), "{printed}");
    assert_eq!(operator.put("services", ""), 200);
    check_owner(operator);
    machine.run(&["systemctl", "reload", "haul-serve"]);
    assert_eq!(operator.get("services").0, 200);

    let authority = Authority::new();
    let issued = authority.issue(&["localhost"]);
    for (name, text) in [
        ("cert.pem", &issued.certificate),
        ("key.pem", &issued.key),
        ("ca.pem", &authority.certificate()),
    ] {
        machine.write(&format!("/srv/admin/{name}"), text);
    }
    operator.run(&keys);
    assert_eq!(config.language, "toml");
    let file = config.lines[0].trim_start_matches("# ");
    machine.write(file, [machine.text(file), config.text()].concat());
    machine.run(&["systemctl", "restart", "haul-serve"]);
    check_signed(operator, "https://localhost:9000/first-signed");

    assert_eq!(changes.language, "ini");
    machine.write("/srv/admin/changes", changes.text());
    machine.write("/usr/bin/editor", EDITOR);
    machine.run(&["chmod", "755", "/usr/bin/editor"]);
    machine.write("/srv/admin/sockets", sockets.text());
    // systemctl starts an editor only if it has a terminal.
    operator.shell("script --quiet --return --command 'bash -e ~/sockets' /dev/null", 0);
    check_signed(operator, "https://localhost/second-signed");
    check_restart(operator);
    machine.shell(
        "systemctl disable --now haul-serve.socket haul-serve
        rm -r /etc/systemd/system/haul-serve.socket.d /etc/haul/credentials/serve/*
        sed -i '/^credentials = /d; /^tls-/d' /etc/haul/serve.toml
        systemctl daemon-reload",
    );
}

/// Asserts that the directories belong to the service.
fn check_owner(operator: &Operator) {
    let directories = ["/var/lib/haul", "/var/lib/haul/store", "/var/log/haul"];
    let stat = ["stat", "--format", "%U %a"];
    let owners = operator.machine.run(&[&stat[..], &directories].concat());
    let owners: Vec<_> = owners.lines().collect();
    assert_eq!(owners, ["haul 700", "haul 700", "haul 750"]);
}

/// Creates a bucket. Asserts that the server has the certificate and the keys of the page.
fn check_signed(operator: &Operator, bucket: &str) {
    let hash = ["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--request", "PUT"];
    let (status, body) = operator.curl(&[&SIGNED[..], &hash, &[bucket]].concat());
    assert_eq!(status, 200, "{body}");
    assert_eq!(operator.curl(&["--cacert", "/srv/admin/ca.pem", bucket]).0, 403);
}

/// Asserts that a client waits while the service restarts, and is not refused.
fn check_restart(operator: &Operator) {
    let machine = &operator.machine;
    let process = || machine.run(&["systemctl", "show", "--property", "MainPID", "haul-serve"]);
    let before = process();
    machine.run(&["systemctl", "restart", "--no-block", "haul-serve"]);
    let mut requests = 0;
    eventually("the service restarts", || {
        requests += 1;
        assert_eq!(operator.health().0, 200);
        process() != before && !process().contains("=0")
    });
    println!("{requests} requests during the restart");
}

/// Uses the file of the page, and prints others.
pub(super) fn configuration(operator: &Operator, blocks: Vec<Block>) {
    let [config, print] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    machine.write("/srv/admin/page.toml", config.text());
    let printed = operator.shell("haul serve --config page.toml --print-config", 0);
    for line in &config.lines {
        assert!(printed.lines().any(|other| other == line), "{line} is not in:\n{printed}");
    }
    machine.shell("install --directory --owner admin /srv/files");
    let (serve, others) = print.lines.split_last().unwrap();
    let printed = operator.shell(&others.join("\n"), 0);
    assert_eq!(printed, "cache = \"256MiB\"\ndata = \"/srv/files\"\n");
    operator.shell(
        &format!(
            "{serve} &
            until curl --silent --fail http://127.0.0.1:9001/health; do sleep 0.1; done
            curl --silent --fail --request PUT http://127.0.0.1:9100/bucket
            kill $! && wait $!"
        ),
        0,
    );
}

/// Runs the checks of the machine.
pub(super) fn check_machine(operator: &Operator, blocks: Vec<Block>) {
    let [doctor] = blocks.try_into().unwrap();
    let printed = operator.run(&doctor);
    assert!(printed.contains("ext4"), "{printed}");
    let report = operator.machine.text("/srv/admin/report.json");
    assert!(report.starts_with('{') && report.contains("\"ext4\""), "{report}");
}
