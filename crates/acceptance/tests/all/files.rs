//! Tests `haul files` with common clients, directly and through `haul relay`: complete files,
//! ranges and resumed downloads.

use std::path::PathBuf;
use std::process::{Command, Output};

use haul_testing::{Random, skip};
use tempfile::TempDir;

use crate::chromium::Page;
use crate::program;
use crate::running::Running;

/// The offset at which a download is interrupted.
const INTERRUPTED_AT: usize = 1_234_567;

/// A file server with its directory, and an optional relay in front of it.
struct FileServer {
    files: Running,
    relay: Option<Running>,
    dir: TempDir,
    url: String,
    big: Vec<u8>,
}

/// The routes of clients to the server: directly, or through a relay with these options.
const ROUTES: [Option<&[&str]>; 3] = [None, Some(&[]), Some(&["--http"])];

/// Runs a test on each route.
fn on_each_route(options: &[&str], test: impl Fn(&FileServer)) {
    for route in ROUTES {
        println!("route: {route:?}");
        let serving = FileServer::start(options, route);
        test(&serving);
        serving.stop();
    }
}

impl FileServer {
    fn start(options: &[&str], route: Option<&[&str]>) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let www = dir.path().join("www");
        std::fs::create_dir(&www).unwrap();
        let big = Random::from_environment().bytes((9 << 20) + 321);
        std::fs::write(www.join("big.bin"), &big).unwrap();
        std::fs::write(www.join("small.txt"), "hello, network\n").unwrap();
        // The server sends the date of a file from two seconds after it on.
        let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        for name in ["big.bin", "small.txt"] {
            let file = std::fs::File::options().write(true).open(www.join(name)).unwrap();
            file.set_modified(an_hour_ago).unwrap();
        }
        let mut command = program::command();
        command.arg("files").arg(&www).args(["--listen", "127.0.0.1:0"]).args(options);
        let files = Running::start(&mut command);
        let relay = route.map(|more| Running::relay("127.0.0.1:0", files.address(), more));
        let url = format!("http://{}", relay.as_ref().unwrap_or(&files).address());
        let serving = Self { files, relay, dir, url, big };
        serving.evict();
        serving
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Evicts the served files from the page cache, so that the next reads come from the disk.
    fn evict(&self) {
        let mut command = program::command();
        command.args(["cache", "evict", "--sync"]).arg(self.path("www"));
        program::assert_success(&command.output().unwrap());
    }

    /// Returns a command that runs in the directory of the server. In the arguments, `{url}` is
    /// replaced by the URL of the server.
    fn command(&self, client: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(client);
        command.current_dir(self.dir.path()).env_remove("http_proxy").env("no_proxy", "*");
        command.args(arguments.iter().map(|argument| argument.replace("{url}", &self.url)));
        command
    }

    fn run(&self, client: &str, arguments: &[&str]) -> Output {
        let output = self.command(client, arguments).output();
        output.unwrap_or_else(|error| panic!("cannot start {client}: {error}"))
    }

    /// Runs a client that must succeed; returns its stdout.
    fn succeed(&self, client: &str, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(client, arguments);
        program::assert_success(&output);
        output.stdout
    }

    /// Interrupts a download of the big file: the reader of the client's stdout exits early.
    fn interrupt_download(&self, client: &str, part: &str) {
        let pipe = format!("{client} {{url}}/big.bin | head -c {INTERRUPTED_AT} > {part}");
        self.succeed("sh", &["-c", &pipe]);
        let part = std::fs::read(self.path(part)).unwrap();
        assert!(
            part == self.big[..INTERRUPTED_AT],
            "{} bytes were received before the interruption",
            part.len()
        );
    }

    fn assert_is_big(&self, name: &str) {
        let bytes = std::fs::read(self.path(name)).unwrap();
        assert!(bytes == self.big, "{name} differs from the served file");
    }

    fn stop(self) {
        self.relay.into_iter().for_each(Running::stop);
        self.files.stop();
    }
}

pub(crate) fn is_installed(client: &str) -> bool {
    Command::new(client).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn curl_fetches_ranges_and_resumes() {
    if !is_installed("curl") {
        return skip("curl is not installed");
    }
    on_each_route(&["--listing"], |serving| {
        curl_fetches_ranges(serving);
        curl_resumes(serving);
        curl_revalidates(serving);
    });
}

fn curl_fetches_ranges(serving: &FileServer) {
    let small = serving.succeed("curl", &["-sf", "{url}/small.txt"]);
    assert_eq!(small, b"hello, network\n");
    let part = serving.succeed("curl", &["-sf", "-r", "4000000-4999999", "{url}/big.bin"]);
    assert!(part == serving.big[4_000_000..5_000_000]);
    let tail = serving.succeed("curl", &["-sf", "-r", "-100000", "{url}/big.bin"]);
    assert!(tail == serving.big[serving.big.len() - 100_000..]);
    let parts = serving.succeed("curl", &["-sf", "-r", "0-4,7-8", "{url}/small.txt"]);
    let parts = String::from_utf8(parts).unwrap();
    assert!(parts.contains("\r\n\r\nhello\r\n--") && parts.contains("\r\n\r\nne\r\n--"), "{parts}");
}

fn curl_resumes(serving: &FileServer) {
    serving.interrupt_download("curl -sf", "big");
    let options = ["-sf", "-C", "-", "-o", "big", "-w", "%{http_code} %{size_download}"];
    let report = serving.succeed("curl", &[&options[..], &["{url}/big.bin"]].concat());
    let rest = serving.big.len() - INTERRUPTED_AT;
    assert_eq!(String::from_utf8_lossy(&report), format!("206 {rest}"));
    serving.assert_is_big("big");
}

fn curl_revalidates(serving: &FileServer) {
    // Unchanged files are not fetched again.
    serving.succeed("curl", &["-sf", "-R", "-o", "small", "{url}/small.txt"]);
    let if_newer = ["-sf", "-o", "again", "-w", "%{http_code}", "-z", "small", "{url}/small.txt"];
    assert_eq!(serving.succeed("curl", &if_newer), b"304");
    let saved = ["-sf", "--etag-save", "tag", "-o", "x", "{url}/small.txt"];
    serving.succeed("curl", &saved);
    let if_none_match =
        ["-sf", "--etag-compare", "tag", "-o", "y", "-w", "%{http_code}", "{url}/small.txt"];
    assert_eq!(serving.succeed("curl", &if_none_match), b"304");
    let listed = serving.succeed("curl", &["-sf", "-H", "Accept: application/json", "{url}/"]);
    assert!(String::from_utf8_lossy(&listed).contains("\"name\":\"big.bin\""));
    // All requests share one connection.
    let many = ["-sf", "-o", "/dev/null", "-w", "%{num_connects} ", "{url}/small.txt?[1-5]"];
    assert_eq!(serving.succeed("curl", &many), b"1 0 0 0 0 ");
}

#[test]
fn wget_resumes_and_mirrors_a_listing() {
    if !is_installed("wget") {
        return skip("wget is not installed");
    }
    on_each_route(&["--listing"], |serving| {
        serving.interrupt_download("wget -qO-", "big.bin");
        let resumed = serving.run("wget", &["-S", "-c", "{url}/big.bin"]);
        program::assert_success(&resumed);
        let output = program::output_text(&resumed);
        assert!(output.contains("206 Partial Content"), "{output}");
        serving.assert_is_big("big.bin");
        serving.succeed("wget", &["-q", "-r", "-np", "-nH", "-P", "mirror", "{url}/"]);
        serving.assert_is_big("mirror/big.bin");
        let small = std::fs::read(serving.path("mirror/small.txt")).unwrap();
        assert_eq!(small, b"hello, network\n");
        // An unchanged file is not fetched again.
        let again = serving.run("wget", &["-N", "-P", "mirror", "{url}/big.bin"]);
        program::assert_success(&again);
        let output = program::output_text(&again);
        assert!(output.contains("304 Not Modified") || output.contains("not modified"), "{output}");
    });
}

/// Fetches and resumes with the two HTTP clients of Python's standard library.
const PYTHON: &str = r#"
import hashlib, http.client, sys, urllib.request
from urllib.parse import urlsplit
url = sys.argv[1]

# The response is closed with most of it unread.
with urllib.request.urlopen(url + "/big.bin") as response:
    tag, length = response.headers["ETag"], int(response.headers["Content-Length"])
    first = response.read(1_000_003)
request = urllib.request.Request(url + "/big.bin")
request.add_header("Range", f"bytes={len(first)}-")
request.add_header("If-Range", tag)
with urllib.request.urlopen(request) as response:
    assert response.status == 206, response.status
    assert response.headers["Content-Range"] == f"bytes {len(first)}-{length - 1}/{length}"
    whole = first + response.read()
assert len(whole) == length
# If the file had changed, the complete new file would be sent.
request.add_header("If-Range", '"another"')
with urllib.request.urlopen(request) as response:
    assert response.status == 200 and response.read() == whole

connection = http.client.HTTPConnection(urlsplit(url).netloc)
for part in (slice(0, 10), slice(3_000_000, 4_000_000), slice(length - 5, length)):
    connection.request("GET", "/big.bin", headers={"Range": f"bytes={part.start}-{part.stop - 1}"})
    response = connection.getresponse()
    assert response.status == 206 and response.read() == whole[part]
connection.request("HEAD", "/big.bin")
response = connection.getresponse()
assert response.status == 200 and response.read() == b""
connection.request("GET", "/big.bin", headers={"If-None-Match": tag})
response = connection.getresponse()
assert response.status == 304 and response.read() == b""
connection.request("GET", "/none")
response = connection.getresponse()
assert response.status == 404 and response.read() == b"404 Not Found\n"
print(hashlib.sha256(whole).hexdigest())
"#;

#[test]
fn python_fetches_and_resumes() {
    if !is_installed("python3") || !is_installed("sha256sum") {
        return skip("python3 or sha256sum is not installed");
    }
    on_each_route(&[], |serving| {
        let fetched = serving.succeed("python3", &["-c", PYTHON, "{url}"]);
        let served = serving.succeed("sha256sum", &["www/big.bin"]);
        assert_eq!(fetched[..64], served[..64]);
    });
}

#[test]
fn chromium_fetches_and_resumes() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    on_each_route(&[], |serving| {
        let page = Page::write(&serving.path("www"));
        page.assert_downloads(&serving.url, &serving.path("home"));
    });
}
