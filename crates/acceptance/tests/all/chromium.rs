//! Opens a page in Chromium, whose script downloads and resumes; and does so over TLS with a private
//! certificate authority.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use haul_testing::{Random, skip};

use crate::files::is_installed;
use crate::program;
use crate::running::Running;
use crate::server::Server;
use crate::tls::Certificates;

/// A page that interrupts a download, resumes it, and reports the result.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<script>
(async () => {
  const hex = async (bytes) => {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const download = new AbortController();
  const first = await fetch("big.bin", { signal: download.signal });
  const received = [];
  const length = () => received.reduce((sum, piece) => sum + piece.length, 0);
  for (const reader = first.body.getReader(); length() < 1234567; ) {
    received.push((await reader.read()).value);
  }
  download.abort();
  const headers = { "Range": `bytes=${length()}-`, "If-Range": first.headers.get("ETag") };
  const second = await fetch("big.bin", { headers });
  const range = second.headers.get("Content-Range") === `bytes ${length()}-${SIZE - 1}/${SIZE}`;
  const rest = await second.arrayBuffer();
  const whole = new Uint8Array(await new Blob([...received, rest]).arrayBuffer());
  const text = await (await fetch("small.txt")).text();
  return [first.status, second.status, range, await hex(whole), text.trim()].join(" ");
})().catch((error) => "failed: " + error)
    .then((report) => fetch("REPORT", { method: "POST", mode: "no-cors", body: report }));
</script>
"#;

/// A page beside the files that its script downloads, and the listener for its report.
pub(crate) struct Page {
    reports: TcpListener,
    big: PathBuf,
}

impl Page {
    /// Writes `page.html` into a directory with the files `big.bin` and `small.txt`.
    pub(crate) fn write(www: &Path) -> Self {
        let (reports, big) = (TcpListener::bind("127.0.0.1:0").unwrap(), www.join("big.bin"));
        let to = format!("http://{}/", reports.local_addr().unwrap());
        let size = std::fs::metadata(&big).unwrap().len().to_string();
        let page = PAGE.replace("SIZE", &size).replace("REPORT", &to);
        std::fs::write(www.join("page.html"), page).unwrap();
        Self { reports, big }
    }

    /// Opens the page, which a server has at this URL, and asserts that it received the files.
    pub(crate) fn assert_downloads(&self, url: &str, home: &Path) {
        let report = self.report(url, home);
        let sum = Command::new("sha256sum").arg(&self.big).output().unwrap();
        let sum = String::from_utf8_lossy(&sum.stdout[..64]);
        let expected = format!("200 206 true {sum} hello, network");
        assert!(report.ends_with(&expected), "{expected}\n{report}");
    }

    /// Opens the page and waits for the request that reports the result.
    fn report(&self, url: &str, home: &Path) -> String {
        let mut chromium = Command::new("timeout");
        chromium.env_remove("http_proxy").env("no_proxy", "*").env("HOME", home);
        // The sandbox of Chromium requires privileges that root in a container does not have.
        chromium.args(["120", "chromium", "--no-sandbox", "--headless", "--disable-gpu"]);
        chromium.args(["--no-first-run", "--disable-dev-shm-usage"]);
        chromium.arg(format!("--user-data-dir={}", home.join("profile").display()));
        chromium.arg(format!("{url}/page.html")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = chromium.spawn().unwrap();
        let id = child.id().to_string();
        thread::scope(|scope| {
            let exit = scope.spawn(move || {
                child.wait().unwrap();
                // If the browser exits without a report, this connection ends the call of `accept`.
                TcpStream::connect(self.reports.local_addr().unwrap()).ok();
            });
            let mut report = String::new();
            let connection = self.reports.accept().unwrap().0;
            let mut lines = BufReader::new(connection);
            // The connection is kept open, so the body must be read by its length.
            let mut length = 0;
            while lines.read_line(&mut report).unwrap() > 2 {
                let line = report.lines().last().unwrap().to_lowercase();
                let declared = line.strip_prefix("content-length: ");
                length = declared.map_or(length, |n| n.parse().unwrap());
            }
            let mut body = String::new();
            lines.take(length).read_to_string(&mut body).unwrap();
            Command::new("kill").arg(&id).status().unwrap();
            exit.join().unwrap();
            report + &body
        })
    }
}

/// Makes Chromium with this home directory trust a certificate authority.
fn trust(home: &Path, authority: &Path) {
    let database = home.join(".pki/nssdb");
    std::fs::create_dir_all(&database).unwrap();
    let certutil = |arguments: &[&str]| {
        let database = format!("sql:{}", database.display());
        let output = Command::new("certutil").args(["-d", &database]).args(arguments).output();
        program::assert_success(&output.unwrap());
    };
    certutil(&["-N", "--empty-password"]);
    let path = authority.to_str().unwrap();
    certutil(&["-A", "-n", "haul test authority", "-t", "C,,", "-i", path]);
}

/// Starts a server of a directory over TLS, and opens its page by a Chromium that trusts the
/// authority.
fn download_over_tls(serve: impl FnOnce(&Path, &Certificates, &dyn Fn(&str))) {
    if !is_installed("chromium") || Command::new("certutil").arg("--help").output().is_err() {
        return skip("chromium or certutil is not installed");
    }
    let (dir, certificates) =
        (tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), Certificates::new());
    let [www, home] = ["www", "home"].map(|name| dir.path().join(name));
    std::fs::create_dir(&www).unwrap();
    std::fs::write(www.join("big.bin"), Random::from_environment().bytes((9 << 20) + 321)).unwrap();
    std::fs::write(www.join("small.txt"), "hello, network\n").unwrap();
    trust(&home, &certificates.authority());
    let page = Page::write(&www);
    serve(dir.path(), &certificates, &|url| page.assert_downloads(url, &home));
}

#[test]
fn chromium_fetches_and_resumes_files_over_tls() {
    download_over_tls(|dir, certificates, open| {
        let mut command = program::command();
        command.arg("files").arg(dir.join("www")).args(["--listen", "127.0.0.1:0"]);
        let files = Running::start(command.args(certificates.options()));
        open(files.address());
        files.stop();
    });
}

#[test]
fn chromium_fetches_and_resumes_objects_over_tls() {
    download_over_tls(|dir, certificates, open| {
        let data = dir.join("data");
        let www = dir.join("www");
        let imported = program::store("import", &data, &["browser", www.to_str().unwrap()]);
        program::assert_success(&imported);
        let server = Server::start_with(&data, &certificates.options());
        open(&format!("{}/browser", server.url()));
        server.stop();
    });
}
