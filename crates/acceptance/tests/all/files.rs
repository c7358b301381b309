//! `haul files` with the clients people have, straight and through `haul relay`: whole files, parts,
//! and what was broken off resumed.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

use haul_test_image::skip;
use tempfile::TempDir;

use crate::program;
use crate::random::Random;
use crate::running::Running;

/// Where a download is broken off.
const BROKEN_AT: usize = 1_234_567;

/// A server of a directory of its own, and what may be before it.
struct Serving {
    files: Running,
    relay: Option<Running>,
    dir: TempDir,
    url: String,
    big: Vec<u8>,
}

/// How clients come to the server: straight, or through a relay with these options.
const ROUTES: [Option<&[&str]>; 3] = [None, Some(&[]), Some(&["--http"])];

/// The server, at the end of each route in turn.
fn on_each_route(options: &[&str], try_it: impl Fn(&Serving)) {
    for route in ROUTES {
        println!("route: {route:?}");
        let serving = Serving::start(options, route);
        try_it(&serving);
        serving.stop();
    }
}

impl Serving {
    fn start(options: &[&str], route: Option<&[&str]>) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let www = dir.path().join("www");
        std::fs::create_dir(&www).unwrap();
        let big = Random::from_environment().bytes((9 << 20) + 321);
        std::fs::write(www.join("big.bin"), &big).unwrap();
        std::fs::write(www.join("small.txt"), "hello, network\n").unwrap();
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

    /// What clients ask for next comes from the disk.
    fn evict(&self) {
        let mut command = program::command();
        command.args(["cache", "evict", "--sync"]).arg(self.path("www"));
        program::assert_success(&command.output().unwrap());
    }

    /// A client among its files; `{url}` is the server's.
    fn command(&self, client: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(client);
        command.current_dir(self.dir.path()).env_remove("http_proxy").env("no_proxy", "*");
        command.args(arguments.iter().map(|one| one.replace("{url}", &self.url)));
        command
    }

    fn run(&self, client: &str, arguments: &[&str]) -> Output {
        let output = self.command(client, arguments).output();
        output.unwrap_or_else(|error| panic!("{client} does not start: {error}"))
    }

    /// The same, which must succeed; what it printed.
    fn succeed(&self, client: &str, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(client, arguments);
        program::assert_success(&output);
        output.stdout
    }

    /// A client writes the big file to its output, and whoever reads that goes after a part of it.
    fn break_off(&self, client: &str, part: &str) {
        let pipe = format!("{client} {{url}}/big.bin | head -c {BROKEN_AT} > {part}");
        self.succeed("sh", &["-c", &pipe]);
        let part = std::fs::read(self.path(part)).unwrap();
        assert!(part == self.big[..BROKEN_AT], "{} bytes came before the break", part.len());
    }

    fn assert_is_big(&self, name: &str) {
        let bytes = std::fs::read(self.path(name)).unwrap();
        assert!(bytes == self.big, "{name} is not what was served");
    }

    fn stop(self) {
        self.relay.into_iter().for_each(Running::stop);
        self.files.stop();
    }
}

fn is_there(client: &str) -> bool {
    Command::new(client).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn curl_fetches_parts_and_resumes() {
    if !is_there("curl") {
        return skip("curl is not installed");
    }
    on_each_route(&["--listing"], |serving| {
        curl_fetches_parts(serving);
        curl_resumes(serving);
        curl_asks_again(serving);
    });
}

fn curl_fetches_parts(serving: &Serving) {
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

fn curl_resumes(serving: &Serving) {
    serving.break_off("curl -sf", "big");
    let told = ["-sf", "-C", "-", "-o", "big", "-w", "%{http_code} %{size_download}"];
    let told = serving.succeed("curl", &[&told[..], &["{url}/big.bin"]].concat());
    let rest = serving.big.len() - BROKEN_AT;
    assert_eq!(String::from_utf8_lossy(&told), format!("206 {rest}"));
    serving.assert_is_big("big");
}

fn curl_asks_again(serving: &Serving) {
    // What is there already is not fetched again.
    serving.succeed("curl", &["-sf", "-R", "-o", "small", "{url}/small.txt"]);
    let told = ["-sf", "-o", "again", "-w", "%{http_code}", "-z", "small", "{url}/small.txt"];
    assert_eq!(serving.succeed("curl", &told), b"304");
    let saved = ["-sf", "--etag-save", "tag", "-o", "x", "{url}/small.txt"];
    serving.succeed("curl", &saved);
    let told = ["-sf", "--etag-compare", "tag", "-o", "y", "-w", "%{http_code}", "{url}/small.txt"];
    assert_eq!(serving.succeed("curl", &told), b"304");
    let listed = serving.succeed("curl", &["-sf", "-H", "Accept: application/json", "{url}/"]);
    assert!(String::from_utf8_lossy(&listed).contains("\"name\":\"big.bin\""));
    // One connection for all of them.
    let many = ["-sf", "-o", "/dev/null", "-w", "%{num_connects} ", "{url}/small.txt?[1-5]"];
    assert_eq!(serving.succeed("curl", &many), b"1 0 0 0 0 ");
}

#[test]
fn wget_resumes_and_mirrors_a_listing() {
    if !is_there("wget") {
        return skip("wget is not installed");
    }
    on_each_route(&["--listing"], |serving| {
        serving.break_off("wget -qO-", "big.bin");
        let resumed = serving.run("wget", &["-S", "-c", "{url}/big.bin"]);
        program::assert_success(&resumed);
        let said = program::said(&resumed);
        assert!(said.contains("206 Partial Content"), "{said}");
        serving.assert_is_big("big.bin");
        serving.succeed("wget", &["-q", "-r", "-np", "-nH", "-P", "mirror", "{url}/"]);
        serving.assert_is_big("mirror/big.bin");
        let small = std::fs::read(serving.path("mirror/small.txt")).unwrap();
        assert_eq!(small, b"hello, network\n");
        // A second time only what changed is fetched.
        let again = serving.run("wget", &["-N", "-P", "mirror", "{url}/big.bin"]);
        program::assert_success(&again);
        let said = program::said(&again);
        assert!(said.contains("304 Not Modified") || said.contains("not modified"), "{said}");
    });
}

/// Fetches and resumes with the two clients of Python's own library.
const PYTHON: &str = r#"
import hashlib, http.client, sys, urllib.request
from urllib.parse import urlsplit
url = sys.argv[1]

# It is closed with most of it unread.
with urllib.request.urlopen(url + "/big.bin") as answer:
    tag, length = answer.headers["ETag"], int(answer.headers["Content-Length"])
    begun = answer.read(1_000_003)
ask = urllib.request.Request(url + "/big.bin")
ask.add_header("Range", f"bytes={len(begun)}-")
ask.add_header("If-Range", tag)
with urllib.request.urlopen(ask) as answer:
    assert answer.status == 206, answer.status
    assert answer.headers["Content-Range"] == f"bytes {len(begun)}-{length - 1}/{length}"
    whole = begun + answer.read()
assert len(whole) == length
# Had it become another file meanwhile, it would come from its beginning.
ask.add_header("If-Range", '"another"')
with urllib.request.urlopen(ask) as answer:
    assert answer.status == 200 and answer.read() == whole

connection = http.client.HTTPConnection(urlsplit(url).netloc)
for part in (slice(0, 10), slice(3_000_000, 4_000_000), slice(length - 5, length)):
    connection.request("GET", "/big.bin", headers={"Range": f"bytes={part.start}-{part.stop - 1}"})
    answer = connection.getresponse()
    assert answer.status == 206 and answer.read() == whole[part]
connection.request("HEAD", "/big.bin")
answer = connection.getresponse()
assert answer.status == 200 and answer.read() == b""
connection.request("GET", "/big.bin", headers={"If-None-Match": tag})
answer = connection.getresponse()
assert answer.status == 304 and answer.read() == b""
connection.request("GET", "/none")
answer = connection.getresponse()
assert answer.status == 404 and answer.read() == b"404 Not Found\n"
print(hashlib.sha256(whole).hexdigest())
"#;

#[test]
fn python_fetches_and_resumes() {
    if !is_there("python3") || !is_there("sha256sum") {
        return skip("python3 or sha256sum is not installed");
    }
    on_each_route(&[], |serving| {
        let fetched = serving.succeed("python3", &["-c", PYTHON, "{url}"]);
        let served = serving.succeed("sha256sum", &["www/big.bin"]);
        assert_eq!(fetched[..64], served[..64]);
    });
}

/// A page that breaks off a download and resumes it, and reports what it got.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<script>
(async () => {
  const hex = async (bytes) => {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const download = new AbortController();
  const first = await fetch("/big.bin", { signal: download.signal });
  const begun = [];
  const length = () => begun.reduce((sum, piece) => sum + piece.length, 0);
  for (const reader = first.body.getReader(); length() < 1234567; ) {
    begun.push((await reader.read()).value);
  }
  download.abort();
  const headers = { "Range": `bytes=${length()}-`, "If-Range": first.headers.get("ETag") };
  const second = await fetch("/big.bin", { headers });
  const range = second.headers.get("Content-Range") === `bytes ${length()}-${SIZE - 1}/${SIZE}`;
  const rest = await second.arrayBuffer();
  const whole = new Uint8Array(await new Blob([...begun, rest]).arrayBuffer());
  const text = await (await fetch("/small.txt")).text();
  return [first.status, second.status, range, await hex(whole), text.trim()].join(" ");
})().catch((error) => "failed: " + error)
    .then((report) => fetch("REPORT", { method: "POST", mode: "no-cors", body: report }));
</script>
"#;

#[test]
fn chromium_fetches_and_resumes() {
    if !is_there("chromium") {
        return skip("chromium is not installed");
    }
    on_each_route(&[], |serving| {
        let reports = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = format!("http://{}/", reports.local_addr().unwrap());
        let page = PAGE.replace("SIZE", &serving.big.len().to_string()).replace("REPORT", &to);
        std::fs::write(serving.path("www/page.html"), page).unwrap();
        let report = reported(serving, &reports);
        let sum = serving.succeed("sha256sum", &["www/big.bin"]);
        let sum = String::from_utf8_lossy(&sum[..64]);
        let expected = format!("200 206 true {sum} hello, network");
        assert!(report.ends_with(&expected), "{expected}\n{report}");
    });
}

/// Opens the page, and waits for the request that tells what came of it.
fn reported(serving: &Serving, reports: &TcpListener) -> String {
    let profile = format!("--user-data-dir={}", serving.path("profile").display());
    // Its sandbox wants rights that a container's root does not give.
    let mut chromium = serving.command("timeout", &["120", "chromium", "--no-sandbox", &profile]);
    chromium.args(["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]);
    chromium.arg(format!("{}/page.html", serving.url));
    let mut child = chromium.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id().to_string();
    thread::scope(|scope| {
        let ended = scope.spawn(move || {
            child.wait().unwrap();
            // If it ended without a word, this is its report.
            TcpStream::connect(reports.local_addr().unwrap()).ok();
        });
        let mut report = String::new();
        let connection = reports.accept().unwrap().0;
        let mut lines = BufReader::new(connection);
        // The head has the length of what follows, behind which nothing comes.
        let mut length = 0;
        while lines.read_line(&mut report).unwrap() > 2 {
            let line = report.lines().last().unwrap().to_lowercase();
            length = line.strip_prefix("content-length: ").map_or(length, |n| n.parse().unwrap());
        }
        let mut body = String::new();
        lines.take(length).read_to_string(&mut body).unwrap();
        Command::new("kill").arg(&id).status().unwrap();
        ended.join().unwrap();
        report + &body
    })
}
