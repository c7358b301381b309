//! Tests that the alert rules, the dashboard and the documentation name metrics of the servers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use haul_testing::{disk_dir, skip};

use crate::http::Client;
use crate::pages::section;
use crate::program::{self, root};
use crate::running::Running;
use crate::server::Server;

/// The section of `docs/monitoring.md` with the configuration of Prometheus.
pub(crate) const SECTION: &str = "Monitoring";

/// Metrics that a server has only in some states; the tests of the servers cover them.
const SOMETIMES: [&str; 34] = [
    "haul_events_delivered_total",
    "haul_events_dropped_total",
    "haul_events_failing",
    "haul_events_failures_total",
    "haul_events_queued",
    "haul_key_file_failing",
    "haul_lifecycle_last_sweep_duration_seconds",
    "haul_lifecycle_last_sweep_timestamp_seconds",
    "haul_member_copy_behind_seconds",
    "haul_member_copy_failing",
    "haul_member_free_bytes",
    "haul_member_latched",
    "haul_member_objects",
    "haul_member_up",
    "haul_member_waiting_seconds",
    "haul_move_failures_total",
    "haul_moved_bytes_total",
    "haul_moved_keys_total",
    "haul_moving_slots",
    "haul_replication_behind_seconds",
    "haul_replication_failing",
    "haul_replication_lease_seconds",
    "haul_replication_requests_total",
    "haul_replication_sent_bytes_total",
    "haul_replication_stopped",
    "haul_s3_bucket_quota_bytes",
    "haul_s3_bucket_quota_objects",
    "haul_s3_bucket_quota_used_bytes",
    "haul_s3_bucket_quota_used_objects",
    "haul_s3_user_quota_bytes",
    "haul_s3_user_quota_objects",
    "haul_s3_user_quota_used_bytes",
    "haul_s3_user_quota_used_objects",
    "haul_standby",
];

fn folder() -> PathBuf {
    root().join("packaging/monitoring")
}

/// Returns the names of metrics in a text: words that begin with `haul_` or `process_`.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_name = |word: &&str| word.starts_with("haul_") || word.starts_with("process_");
    words.filter(is_name).map(family).collect()
}

/// Returns the name without the suffix of a sample of a histogram.
fn family(name: &str) -> String {
    let suffix = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    suffix.unwrap_or(name).to_owned()
}

/// Returns the names of all metrics on a page, as its `TYPE` lines list them.
fn families(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn metrics_at(address: &str) -> BTreeSet<String> {
    let response = Client::connect(address).unwrap().request("GET", "/metrics", b"").unwrap();
    families(&String::from_utf8_lossy(&response.body))
}

/// Returns the names of all metrics of the three servers.
fn metrics() -> BTreeSet<String> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let serve = Server::start(&dir.path().join("data"));
    let mut all = metrics_at(&serve.admin);
    let admin = ["--admin", "127.0.0.1:0"];
    let mut command = program::command();
    command.arg("files").arg(dir.path()).args(["--listen", "127.0.0.1:0"]).args(admin);
    let files = Running::start(&mut command);
    all.extend(metrics_at(files.admin()));
    let relay = Running::relay("127.0.0.1:0", files.address(), &[&admin[..], &["--http"]].concat());
    all.extend(metrics_at(relay.admin()));
    relay.stop();
    files.stop();
    all.extend(SOMETIMES.map(str::to_owned));
    all
}

#[test]
fn rules_dashboard_and_page_name_metrics_that_exist() {
    let metrics = metrics();
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    for name in ["alerts.yml", "alerts.test.yml", "grafana.json"] {
        let used = names(&read(&format!("packaging/monitoring/{name}")));
        let unknown: Vec<_> = used.difference(&metrics).collect();
        assert!(!used.is_empty() && unknown.is_empty(), "{name}: no server has {unknown:?}");
    }
    let page = read("docs/monitoring.md");
    let documented = names(&page);
    let unknown: Vec<_> = documented.difference(&metrics).collect();
    let missing: Vec<_> = metrics.difference(&documented).collect();
    assert!(unknown.is_empty() && missing.is_empty(), "unknown {unknown:?}, missing {missing:?}");
    let rules = read("packaging/monitoring/alerts.yml");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(page.contains(&format!("`{alert}`")), "docs/monitoring.md lacks {alert}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    let promtool = std::env::var_os("HAUL_PROMTOOL").unwrap_or_else(|| "promtool".into());
    let run =
        |arguments: &[&str]| Command::new(&promtool).args(arguments).current_dir(folder()).output();
    let Ok(checked) = run(&["check", "rules", "alerts.yml"]) else {
        return skip("promtool is not installed");
    };
    program::assert_success(&checked);
    program::assert_success(&run(&["test", "rules", "alerts.test.yml"]).unwrap());

    let [configuration] = section("docs/monitoring.md", SECTION).try_into().unwrap();
    let dir = disk_dir();
    std::fs::write(dir.path().join("prometheus.yml"), configuration.text()).unwrap();
    std::fs::copy(folder().join("alerts.yml"), dir.path().join("alerts.yml")).unwrap();
    let mut check = Command::new(&promtool);
    check.args(["check", "config", "prometheus.yml"]).current_dir(dir.path());
    program::assert_success(&check.output().unwrap());
}
