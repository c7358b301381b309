//! The benchmark `relay`: checks rows and counts of short runs, but no times.

use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;
use haul_bench::relay::{Options, run};
use haul_bench::{Error, Report, Row, Silent, Value};
use haul_testing::skip;
use tempfile::TempDir;

use crate::disk_dir;

fn options(dir: &TempDir, rivals: &[&str]) -> Options {
    Options {
        path: std::env::var_os("PATH").unwrap_or_default(),
        rivals: Some(rivals.iter().map(|name| (*name).to_owned()).collect()),
        flows: vec![1, 3],
        message_bytes: vec![64, 300_000],
        rounds: 1,
        time: Duration::from_millis(30),
        ..Options::parse_from(["relay".as_ref(), "--dir".as_ref(), dir.path()])
    }
}

/// Returns the report of a short run, or `None` if this machine cannot run the benchmark or a rival
/// is missing.
fn measured(options: &Options, dir: &TempDir) -> Option<Report> {
    let report = match run(options, &Silent) {
        Err(Error::Missing(why)) => {
            skip(&why);
            return None;
        }
        other => other.unwrap(),
    };
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    for rival in options.rivals.iter().flatten() {
        if !report.host.versions.contains_key(rival) {
            skip(&format!("{rival} is not on PATH"));
            return None;
        }
    }
    Some(report)
}

fn number(report: &Report, row: &Row, key: &str) -> Option<f64> {
    report.value(row, key)?.number()
}

/// Checks all workloads with one rival. A wrong byte would set the state of its row to a failure.
fn check(rival: &str, settings: usize) {
    let dir = disk_dir();
    let options = options(&dir, &[rival]);
    let Some(report) = measured(&options, &dir) else { return };
    let of = |table: &'static str| report.rows.iter().filter(move |row| row.table == table);
    // Each workload has a row for each setting, and a second row ("again") for the first setting.
    assert_eq!(of("bulk").count(), 2 * (settings + 1));
    assert_eq!(of("messages").count(), 4 * (settings + 1));
    assert_eq!(of("connections").count(), 2 * (settings + 1));
    for row in &report.rows {
        assert_eq!(row.state, None, "{row:?}");
        assert_eq!(report.value(row, "relay"), Some(&Value::from(rival)), "{row:?}");
    }
    for row in of("bulk") {
        assert!(number(&report, row, "mib_per_s").is_some_and(|rate| rate > 0.0), "{row:?}");
    }
    for row in of("messages").chain(of("connections")) {
        assert!(number(&report, row, "per_s").is_some_and(|rate| rate > 0.0), "{row:?}");
        assert!(number(&report, row, "p50_us") <= number(&report, row, "p99_us"), "{row:?}");
    }
    let costs: Vec<_> = of("pipes and descriptors for a connection").collect();
    assert_eq!(costs.len(), settings);
    for row in costs {
        let descriptors = number(&report, row, "descriptors_per_connection").unwrap();
        assert!((2.0..20.0).contains(&descriptors), "{row:?}");
    }
}

#[test]
fn haproxy_delivers_all_bytes() {
    check("haproxy", 5);
}

#[test]
fn nginx_delivers_all_bytes() {
    check("nginx", 2);
}

#[test]
fn socat_delivers_all_bytes() {
    check("socat", 1);
}

#[test]
fn report_without_relays_is_empty_and_a_failing_haul_is_an_error() {
    let dir = disk_dir();
    let alone = Options { path: OsString::new(), ..options(&dir, &[]) };
    match run(&alone, &Silent) {
        Ok(report) => assert!(report.rows.is_empty() && report.ratios.is_empty()),
        Err(Error::Missing(why)) => return skip(&why),
        Err(error) => panic!("{error:?}"),
    }
    let wrong = Options { program: Some("/bin/false".into()), ..alone };
    let error = run(&wrong, &Silent).unwrap_err();
    assert!(error.to_string().contains("haul ended"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
}
