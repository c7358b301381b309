//! Runs a session of several users, with boto3 and `haul keys`, against a running server. The
//! assertions are in `users_session.py`.

use std::process::Command;

use haul_testing::skip;

use crate::boto3::{has_boto3, python};
use crate::program;
use crate::server::{KEYS, Server};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/users_session.py");

#[test]
fn users_have_their_rights_and_changes_apply_while_the_server_runs() {
    if !has_boto3() {
        return skip("python3 has no boto3; set HAUL_PYTHON to an interpreter that has it");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).into_os_string().into_string().unwrap();
    let (keys, seal) = (path("keys.json"), path("sealing-key"));
    let files = ["--keys", &*keys, "--sealing-key", &*seal];
    let output = program::command().args(["keys", "init"]).args(files).output().unwrap();
    program::assert_success(&output);
    let server = Server::start_with_keys(&dir.path().join("data"), &files);
    let mut script = Command::new(python());
    // The environment of the test must not configure the client.
    script.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    script.arg(SCRIPT).arg(program::path()).args([&keys, &seal, &server.url()]);
    let output = script.args([KEYS.0, KEYS.1]).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    program::assert_success(&output);
    server.stop();
}
