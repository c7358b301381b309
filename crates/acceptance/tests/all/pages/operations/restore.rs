//! Loses the store, and restores it from its copies.

use haul_testing::eventually;

use super::{Block, Operator};

/// Starts the server of the bucket with the copy, and lets the service keep a copy in it.
const COPY: &str = "
systemd-run --quiet --unit backup haul serve --data /srv/backup --listen 127.0.0.1:9200 \\
    --admin 127.0.0.1:9201
until curl --silent --fail http://127.0.0.1:9201/health; do sleep 0.1; done
curl --silent --fail --request PUT http://127.0.0.1:9200/backup
cat >/etc/haul/remote <<END
aws_endpoint = http://127.0.0.1:9200
aws_allow_http = true
aws_region = us-east-1
aws_access_key_id = any
aws_secret_access_key = any
END
chgrp haul /etc/haul/remote
chmod 640 /etc/haul/remote
cat >>/etc/haul/serve.toml <<END
remote = \"s3://backup/haul\"
remote-options = \"/etc/haul/remote\"
END
";

/// Restores the store from its copy in another server, and from a snapshot.
pub(super) fn restore(operator: &Operator, blocks: Vec<Block>) {
    let [restore, snapshot] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    machine.shell(COPY);
    operator.start_empty();
    assert_eq!(operator.put("bucket", ""), 200);
    assert_eq!(operator.put("bucket/key", "content"), 200);
    eventually("the copy has all writes", || {
        let (_, page) = operator.curl(&["http://127.0.0.1:9001/metrics"]);
        page.contains("\nhaul_replication_behind_seconds 0\n")
            && !page.contains("\nhaul_replication_requests_total 0\n")
    });

    operator.run(&restore);
    set_data(operator, "/var/lib/haul/restored");
    machine.run(&["systemctl", "restart", "haul-serve"]);
    assert_eq!(operator.get("bucket/key"), (200, "content".to_owned()));
    assert_eq!(operator.put("bucket/after", "content"), 200);

    // The server with the old store is fenced.
    set_data(operator, "/var/lib/haul/store");
    let started = machine.output(&["systemctl", "restart", "haul-serve"]);
    assert!(!started.status.success());
    machine.run(&["systemctl", "stop", "haul-serve"]);
    let log = machine.run(&["journalctl", "--unit", "haul-serve", "--no-pager", "--lines", "20"]);
    assert!(log.contains("another server"), "{log}");

    operator.run(&snapshot);
    machine.run(&["sed", "-i", "/^remote/d", "/etc/haul/serve.toml"]);
    set_data(operator, "/var/lib/haul/before-upgrade");
    machine.run(&["systemctl", "restart", "haul-serve"]);
    assert_eq!(operator.get("bucket/key"), (200, "content".to_owned()));
    assert_eq!(operator.put("bucket/after", "content"), 200);
}

/// Sets `data` in the configuration of the service.
fn set_data(operator: &Operator, data: &str) {
    let change = format!("s|^data = .*|data = \"{data}\"|");
    operator.machine.run(&["sed", "-i", &change, "/etc/haul/serve.toml"]);
}
