//! Tests `haul files`, `haul serve` and `haul relay` with TLS, by curl and a private certificate authority.

use std::path::{Path, PathBuf};
use std::process::Command;

use haul_testing::tls::Authority;
use haul_testing::{Random, skip};
use tempfile::TempDir;

use crate::program;
use crate::running::Running;
use crate::server::Server;

/// The files of a private certificate authority and of a certificate for `127.0.0.1`.
pub(crate) struct Certificates {
    dir: TempDir,
    server: [PathBuf; 2],
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let authority = Authority::new();
        std::fs::write(dir.path().join("ca.pem"), authority.certificate()).unwrap();
        let server = authority.issue(&["localhost", "127.0.0.1"]).write(dir.path(), "server");
        Self { dir, server }
    }

    /// Returns the path of the certificate of the authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Returns the options of a server with the certificate.
    pub(crate) fn options(&self) -> [&str; 4] {
        let [certificate, key] = self.server.each_ref().map(|path| path.to_str().unwrap());
        ["--tls-cert", certificate, "--tls-key", key]
    }
}

/// Runs curl in `dir`; `{url}` is replaced by `https://localhost` with the port of the server's
/// address and the path `/www`. Returns its stdout.
fn curl(dir: &Path, address: &str, arguments: &[&str]) -> Vec<u8> {
    let (_, port) = address.rsplit_once(':').unwrap();
    let url = format!("https://localhost:{port}/www");
    let mut command = Command::new("curl");
    command.current_dir(dir).env("no_proxy", "*").args(["-sf", "-4", "--cacert", "ca.pem"]);
    command.args(arguments.iter().map(|argument| argument.replace("{url}", &url)));
    let output = command.output().unwrap();
    program::assert_success(&output);
    output.stdout
}

fn check_downloads(dir: &Path, server: &str, large: &[u8]) {
    assert_eq!(curl(dir, server, &["{url}/small"]), b"small");
    let several = curl(dir, server, &["{url}/small", "{url}/small", "-w", "%{num_connects} "]);
    assert_eq!(String::from_utf8_lossy(&several), "small1 small0 ", "one connection for both");
    assert!(curl(dir, server, &["{url}/large"]) == large);
    assert!(curl(dir, server, &["--tls-max", "1.2", "{url}/large"]) == large);
    assert!(
        curl(dir, server, &["-r", "1000000-1999999", "{url}/large"]) == large[1_000_000..2_000_000]
    );
}

#[test]
fn curl_uploads_and_downloads_over_tls() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("curl is not installed");
    }
    let certificates = Certificates::new();
    let path = certificates.dir.path();
    let large = Random::from_environment().bytes(50 << 20);
    std::fs::write(path.join("small"), "small").unwrap();
    std::fs::write(path.join("large"), &large).unwrap();
    let server = Server::start_with(&path.join("data"), &certificates.options());
    curl(path, &server.listen, &["-X", "PUT", "{url}"]);
    curl(path, &server.listen, &["-T", "{small,large}", "{url}/"]);
    check_downloads(path, &server.listen, &large);
    server.stop();
}

#[test]
fn curl_downloads_over_tls_from_the_server_and_through_the_relay() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("curl is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (path, authority) = (dir.path(), Authority::new());
    let large = Random::from_environment().bytes(50 << 20);
    std::fs::create_dir(path.join("www")).unwrap();
    std::fs::write(path.join("www/small"), "small").unwrap();
    std::fs::write(path.join("www/large"), &large).unwrap();
    std::fs::write(path.join("ca.pem"), authority.certificate()).unwrap();
    let paths = authority.issue(&["localhost"]).write(path, "server");
    let [certificate, key] = paths.each_ref().map(|path| path.to_str().unwrap());
    let tls = ["--tls-cert", certificate, "--tls-key", key];
    let files = |options: &[&str]| {
        let mut command = program::command();
        let options = ["--listen", "127.0.0.1:0"].iter().chain(options);
        Running::start(command.arg("files").arg(path).args(options))
    };

    let server = files(&tls);
    check_downloads(path, server.address(), &large);
    server.stop();

    let plain = files(&[]);
    for mode in [&["--http"][..], &[]] {
        let relay = Running::relay("127.0.0.1:0", plain.address(), &[mode, &tls].concat());
        check_downloads(path, relay.address(), &large);
        relay.stop();
    }
    plain.stop();
}
