//! Runs a session of boto3, the most common S3 client, against the server. The assertions are in
//! `boto3_session.py`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use haul_testing::skip;

use crate::program;
use crate::server::{KEYS, Server};
use crate::tls::Certificates;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/boto3_session.py");

/// Returns the Python interpreter with boto3: `HAUL_PYTHON`, or `python3`.
pub(crate) fn python() -> OsString {
    std::env::var_os("HAUL_PYTHON").unwrap_or_else(|| "python3".into())
}

pub(crate) fn has_boto3() -> bool {
    let output = Command::new(python()).args(["-c", "import boto3"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn session(start: impl Fn(&Path) -> Server, keys: &[&str]) {
    session_with(start, Server::url, keys, None);
}

/// Runs a session of a client that trusts the certificate authority in `ca`.
fn session_with(
    start: impl Fn(&Path) -> Server,
    url: impl Fn(&Server) -> String,
    keys: &[&str],
    ca: Option<&Path>,
) {
    if !has_boto3() {
        return skip("python3 has no boto3; set HAUL_PYTHON to an interpreter that has it");
    }
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path());
    let mut script = Command::new(python());
    // The environment of the test must not configure the client.
    script.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // Of boto3, and of the standard library, which requests the presigned URLs.
    for name in ["AWS_CA_BUNDLE", "SSL_CERT_FILE"] {
        script.envs(ca.map(|ca| (name, ca)));
    }
    let output = script.arg(SCRIPT).arg(url(&server)).args(keys).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    program::assert_success(&output);
    server.stop();
    program::assert_success(&program::store("verify", data.path(), &[]));
}

/// The session waits until objects expire.
const OPTIONS: &[&str] = &["--lifecycle-check", "300ms"];

#[test]
fn boto3_session_passes_with_keys() {
    session(|data| Server::start_with_keys(data, OPTIONS), &[KEYS.0, KEYS.1]);
}

#[test]
fn boto3_session_passes_over_tls() {
    let certificates = Certificates::new();
    let options = [OPTIONS, &certificates.options()].concat();
    let start = |data: &Path| Server::start_with_keys(data, &options);
    session_with(start, Server::url, &[KEYS.0, KEYS.1], Some(&certificates.authority()));
}

#[test]
fn boto3_session_passes_with_hosts_of_buckets() {
    let options = [OPTIONS, &["--domain", "localhost"]].concat();
    let url = |server: &Server| server.url().replace("127.0.0.1", "localhost");
    let start = |data: &Path| Server::start_with_keys(data, &options);
    session_with(start, url, &[KEYS.0, KEYS.1], None);
    session_with(|data| Server::start_with(data, &options), url, &[], None);
}

#[test]
fn boto3_session_passes_without_keys() {
    session(|data| Server::start_with(data, OPTIONS), &[]);
}
