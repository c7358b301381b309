//! Runs the program as `haul bench log` does.
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

fn forms() -> Vec<String> {
    let output = run(&["--list"]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_rival_comes_first_in_its_own_name() {
    let mut families = Vec::new();
    for form in forms() {
        let of = form.strip_prefix("pages/").unwrap_or(&form);
        let front = &form[..form.len() - of.len()];
        let family = format!("{front}{}", of.split('/').next().unwrap());
        if !families.contains(&family) {
            assert_eq!(form, family);
            families.push(family);
        }
    }
    let mut expected = vec!["okaywal", "walrus", "raft-engine"];
    if cfg!(feature = "rocksdb") {
        expected.push("rocksdb");
    }
    expected.extend(["sqlite", "pages/sqlite", "pages/lmdb"]);
    assert_eq!(families, expected);
}

#[test]
fn every_form_appends_from_several_threads_and_tells_figures() {
    for form in forms() {
        let dir = tempfile::tempdir().unwrap();
        let output = run(&[
            "--log",
            &form,
            "--dir",
            dir.path().to_str().unwrap(),
            "--writers",
            "3",
            "--record-bytes",
            "1000",
            "--pages",
            "100",
            "--settle-ms",
            "10",
            "--measure-ms",
            "200",
        ]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{form}: {said}");
        let told = String::from_utf8(output.stdout).unwrap();
        let sample = told.lines().last().and_then(Sample::from_json);
        let sample = sample.unwrap_or_else(|| panic!("{form}: {told}"));
        assert!(sample.appends > 0.0 && sample.p50_us.is_some(), "{form}: {told}");
        // What was appended lies where it was told to; pages that were changed took no room.
        let bytes: u64 = walk(dir.path());
        let least =
            if form.starts_with("pages/") { 100.0 * 4096.0 } else { sample.appends * 1000.0 };
        assert!(bytes as f64 >= least, "{form}: {bytes} bytes, {told}");
    }
}

/// The length of all files below.
fn walk(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            it if it.is_dir() => walk(&entry.path()),
            it => it.len(),
        })
        .sum()
}

#[test]
fn a_log_nobody_knows_is_refused_with_those_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["--log", "nothing", "--dir", dir.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("nothing") && said.contains("okaywal"));
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_relay_carries_what_is_sent_both_ways_and_the_end() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = backend.local_addr().unwrap().to_string();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let words = ["--relay", "tokio", "--listen", &free, "--to", &to, "--buffer-bytes", "65536"];
    let program = env!("CARGO_BIN_EXE_haul-bench-compare");
    let _relay = Running(Command::new(program).args(words).spawn().unwrap());
    let end = Instant::now() + Duration::from_secs(10);
    let mut near = loop {
        match TcpStream::connect(&free) {
            Ok(near) => break near,
            Err(error) => assert!(Instant::now() < end, "it does not listen: {error}"),
        }
        std::thread::yield_now();
    };
    let mut far = backend.accept().unwrap().0;
    let question: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            near.write_all(&question).unwrap();
            near.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).unwrap();
        assert!(heard == question);
    });
    far.write_all(b"answer").unwrap();
    drop(far);
    let mut heard = String::new();
    near.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "answer");
}
