//! The benchmark `files`: checks rows and counts of short runs, but no times.

use std::ffi::OsString;
use std::net::TcpListener;
use std::time::Duration;

use clap::Parser;
use haul_bench::files::{Options, Part, run, serve_with_hyper};
use haul_bench::{Error, Report, Row, Silent, Value};
use haul_testing::http::Peer;
use haul_testing::skip;
use tempfile::TempDir;

use crate::disk_dir;

fn options(dir: &TempDir, parts: &[Part]) -> Options {
    Options {
        path: std::env::var_os("PATH").unwrap_or_default(),
        parts: parts.to_vec(),
        hot_bytes: vec![1 << 10, 5000],
        hot_files: 20,
        big_bytes: (2 << 20) + 100,
        big_files: 3,
        memory_bytes: 32 << 20,
        connections: 4,
        rounds: 2,
        time: Duration::from_millis(30),
        ..Options::parse_from(["files".as_ref(), "--dir".as_ref(), dir.path()])
    }
}

/// Returns the report of a short run, or `None` if this machine cannot run the benchmark.
fn measured(options: &Options, dir: &TempDir) -> Option<Report> {
    let report = match run(options, &Silent) {
        Err(Error::Missing(why)) => {
            skip(&why);
            return None;
        }
        other => other.unwrap(),
    };
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    if !report.host.versions.contains_key("nginx") {
        skip("nginx is not on PATH");
        return None;
    }
    Some(report)
}

fn number(report: &Report, row: &Row, key: &str) -> Option<f64> {
    report.value(row, key)?.number()
}

fn settings(report: &Report, load: &str) -> Vec<String> {
    let of_load = |row: &&Row| report.value(row, "load") == Some(&Value::from(load));
    let setting = |row| match report.value(row, "setting") {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    report.rows.iter().filter(of_load).map(setting).collect()
}

#[test]
fn nginx_serves_hot_and_big_files_in_all_its_settings() {
    let dir = disk_dir();
    let options = options(&dir, &[Part::Hot, Part::Warm, Part::Cold]);
    let Some(report) = measured(&options, &dir) else { return };
    for load in ["hot, 1024 B", "hot, 5000 B"] {
        let expected =
            ["sendfile, tcp_nopush", "sendfile, tcp_nopush, again", "sendfile", "sendfile off"];
        assert_eq!(settings(&report, load), expected);
    }
    let cold = settings(&report, "cold");
    let has_go = report.host.versions.contains_key("go");
    assert_eq!(cold.len(), if has_go { 5 } else { 4 });
    assert!(cold.iter().any(|setting| setting.contains("directio")));
    for row in &report.rows {
        assert_eq!(row.state, None, "{row:?}");
        let is_big = number(&report, row, "requests_per_s").is_none();
        assert!(!is_big || number(&report, row, "mib_per_s").is_some_and(|rate| rate > 0.0));
        assert!(is_big || number(&report, row, "requests_per_s").is_some_and(|rate| rate > 0.0));
    }
    // Direct reads leave only the last partial page in the page cache.
    let cached = |setting: &str| {
        let is = |row: &&Row| {
            report.value(row, "load") == Some(&Value::from("cold"))
                && report.value(row, "setting") == Some(&Value::from(setting))
        };
        number(&report, report.rows.iter().find(is).unwrap(), "cached_percent").unwrap()
    };
    // The kernel may reclaim some of the pages at any time.
    assert!(cached("sendfile, tcp_nopush") > 75.0);
    assert!(!has_go || cached("http.ServeFile, GOMAXPROCS=1") > 75.0);
    assert!(cached("directio 1m, aio threads") < 1.0, "{}", cached("directio 1m, aio threads"));
}

#[test]
fn server_with_hyper_sends_files_and_refuses_other_paths() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("site")).unwrap();
    std::fs::write(dir.path().join("site/a"), "content").unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let root = dir.path().join("site");
    std::thread::spawn(move || serve_with_hyper(&root, listener));
    let mut peer = Peer::connect(address).unwrap();
    for (path, expected) in [
        ("/a", (200, "content")),
        ("/a", (200, "content")),
        ("/b", (404, "")),
        ("/../secret", (404, "")),
    ] {
        let response = peer.exchange(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!((response.status, response.text()), expected, "{path}");
    }
}

#[test]
fn report_without_servers_is_empty_and_a_failing_haul_is_an_error() {
    let dir = disk_dir();
    let alone = Options { path: OsString::new(), ..options(&dir, &Part::ALL) };
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
