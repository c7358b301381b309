//! Runs the program as `haul bench log` and `haul bench relay` do.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use haul_bench::log::Sample;

fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_haul-bench-compare");
    Command::new(program).args(arguments).output().unwrap()
}

fn variants() -> Vec<String> {
    let output = run(&["--list"]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn first_variant_of_a_rival_has_no_suffix() {
    let mut families = Vec::new();
    for variant in variants() {
        let of = variant.strip_prefix("small-files/").unwrap_or(&variant);
        let front = &variant[..variant.len() - of.len()];
        let family = format!("{front}{}", of.split('/').next().unwrap());
        if !families.contains(&family) {
            assert_eq!(variant, family);
            families.push(family);
        }
    }
    let mut expected = vec!["okaywal", "walrus", "raft-engine"];
    if cfg!(feature = "rocksdb") {
        expected.push("rocksdb");
    }
    expected.push("sqlite");
    if cfg!(feature = "rocksdb") {
        expected.push("small-files/rocksdb");
    }
    expected.extend(["small-files/lmdb", "small-files/sqlite", "small-files/fjall"]);
    assert_eq!(families, expected);
}

#[test]
fn every_variant_appends_from_several_threads_and_reports_figures() {
    for variant in variants() {
        let dir = tempfile::tempdir().unwrap();
        let output = run(&[
            "--log",
            &variant,
            "--dir",
            dir.path().to_str().unwrap(),
            "--writers",
            "3",
            "--record-bytes",
            "1000",
            "--settle-ms",
            "10",
            "--measure-ms",
            "200",
        ]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variant}: {stderr}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let sample = stdout.lines().last().and_then(Sample::from_json);
        let sample = sample.unwrap_or_else(|| panic!("{variant}: {stdout}"));
        assert!(sample.appends > 0.0 && sample.p50_us.is_some(), "{variant}: {stdout}");
        // All appended records are in the directory; okaywal reuses its files of 1 MiB.
        let bytes: u64 = size_below(dir.path());
        let least = match variant.as_str() {
            "okaywal" => (sample.appends * 1000.0).min(f64::from(1 << 20)),
            _ => sample.appends * 1000.0,
        };
        assert!(bytes as f64 >= least, "{variant}: {bytes} bytes, {stdout}");
    }
}

/// Returns the total size of all files below `dir`.
fn size_below(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            it if it.is_dir() => size_below(&entry.path()),
            it => it.len(),
        })
        .sum()
}

#[test]
fn unknown_log_is_refused_with_a_list_of_known_ones() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["--log", "nothing", "--dir", dir.path().to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("nothing") && stderr.contains("okaywal"));
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn relay_forwards_both_directions_and_the_end() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = backend.local_addr().unwrap().to_string();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let words = ["--relay", "tokio", "--listen", &free, "--to", &to, "--buffer-bytes", "65536"];
    let program = env!("CARGO_BIN_EXE_haul-bench-compare");
    let _relay = Running(Command::new(program).args(words).spawn().unwrap());
    let end = Instant::now() + Duration::from_secs(10);
    let mut client = loop {
        match TcpStream::connect(&free) {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < end, "the relay does not listen: {error}"),
        }
        std::thread::yield_now();
    };
    let mut target = backend.accept().unwrap().0;
    let request: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&request).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        target.read_to_end(&mut received).unwrap();
        assert!(received == request);
    });
    target.write_all(b"response").unwrap();
    drop(target);
    let mut received = String::new();
    client.read_to_string(&mut received).unwrap();
    assert_eq!(received, "response");
}
