//! `haul files` with the clients people have: whole files, parts, and what was broken off resumed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use haul_test_image::skip;
use tempfile::TempDir;

use crate::program;
use crate::random::Random;

/// A server of a directory of its own; it is killed when dropped.
struct Serving {
    child: Child,
    stderr: File,
    dir: TempDir,
    url: String,
    big: Vec<u8>,
}

impl Serving {
    fn start(options: &[&str]) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let www = dir.path().join("www");
        std::fs::create_dir(&www).unwrap();
        let big = Random::from_environment().bytes((9 << 20) + 321);
        std::fs::write(www.join("big.bin"), &big).unwrap();
        std::fs::write(www.join("small.txt"), "hello, network\n").unwrap();
        let mut command = program::command();
        command.arg("files").arg(&www).args(["--listen", "127.0.0.1:0"]).args(options);
        let stderr = tempfile::tempfile().unwrap();
        command.stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap());
        let mut child = command.spawn().expect("haul starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("haul is ready: files on ").unwrap().to_owned();
        let serving = Self { child, stderr, dir, url, big };
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

    /// Runs a client among its files; `{url}` is the server's.
    fn run(&self, client: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(client);
        command.current_dir(self.dir.path()).env_remove("http_proxy").env("no_proxy", "*");
        command.args(arguments.iter().map(|one| one.replace("{url}", &self.url)));
        command.output().unwrap_or_else(|error| panic!("{client} does not start: {error}"))
    }

    /// The same, which must succeed; what it printed.
    fn succeed(&self, client: &str, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(client, arguments);
        program::assert_success(&output);
        output.stdout
    }

    /// Leaves the first part of the big file, as a broken download does.
    fn leave_part(&self, name: &str) {
        std::fs::write(self.path(name), &self.big[..1_234_567]).unwrap();
    }

    fn assert_is_big(&self, path: &Path) {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes == self.big, "{} is not what was served", path.display());
    }

    fn stop(mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.stderr.rewind().unwrap();
        self.stderr.read_to_string(&mut said).unwrap();
        assert!(status.success() && !said.contains("panicked at"), "{status}:\n{said}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
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
    let serving = Serving::start(&["--listing"]);
    let small = serving.succeed("curl", &["-sf", "{url}/small.txt"]);
    assert_eq!(small, b"hello, network\n");
    let part = serving.succeed("curl", &["-sf", "-r", "4000000-4999999", "{url}/big.bin"]);
    assert!(part == serving.big[4_000_000..5_000_000]);
    let tail = serving.succeed("curl", &["-sf", "-r", "-100000", "{url}/big.bin"]);
    assert!(tail == serving.big[serving.big.len() - 100_000..]);
    let parts = serving.succeed("curl", &["-sf", "-r", "0-4,7-8", "{url}/small.txt"]);
    let parts = String::from_utf8(parts).unwrap();
    assert!(parts.contains("\r\n\r\nhello\r\n--") && parts.contains("\r\n\r\nne\r\n--"), "{parts}");
    serving.leave_part("big");
    serving.succeed("curl", &["-sf", "-C", "-", "-o", "big", "{url}/big.bin"]);
    serving.assert_is_big(&serving.path("big"));

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
    serving.stop();
}

#[test]
fn wget_resumes_and_mirrors_a_listing() {
    if !is_there("wget") {
        return skip("wget is not installed");
    }
    let serving = Serving::start(&["--listing"]);
    serving.leave_part("big.bin");
    serving.succeed("wget", &["-q", "-c", "{url}/big.bin"]);
    serving.assert_is_big(&serving.path("big.bin"));
    serving.succeed("wget", &["-q", "-r", "-np", "-nH", "-P", "mirror", "{url}/"]);
    serving.assert_is_big(&serving.path("mirror/big.bin"));
    let small = std::fs::read(serving.path("mirror/small.txt")).unwrap();
    assert_eq!(small, b"hello, network\n");
    // A second time only what changed is fetched.
    let again = serving.run("wget", &["-N", "-P", "mirror", "{url}/big.bin"]);
    program::assert_success(&again);
    let said = program::said(&again);
    assert!(said.contains("304 Not Modified") || said.contains("not modified"), "{said}");
    serving.stop();
}

/// Fetches and resumes with the two clients of Python's own library.
const PYTHON: &str = r#"
import hashlib, http.client, sys, urllib.request
from urllib.parse import urlsplit
url = sys.argv[1]

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
    let serving = Serving::start(&[]);
    let fetched = serving.succeed("python3", &["-c", PYTHON, "{url}"]);
    let served = serving.succeed("sha256sum", &["www/big.bin"]);
    assert_eq!(fetched[..64], served[..64]);
    serving.stop();
}

/// A page that asks for parts as pages do, and writes into itself what it got.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>loading</title>
<p id="out">nothing</p>
<script>
(async () => {
  const bytes = async (range, more) => {
    const answer = await fetch("/big.bin", { headers: { ...(range && { Range: range }), ...more } });
    return [answer, new Uint8Array(await answer.arrayBuffer())];
  };
  const hex = async (bytes) => {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const [first, begun] = await bytes("bytes=0-1234566");
  const tag = first.headers.get("ETag");
  const [second, rest] = await bytes("bytes=1234567-", { "If-Range": tag });
  const whole = new Uint8Array(begun.length + rest.length);
  whole.set(begun);
  whole.set(rest, begun.length);
  const text = await (await fetch("/small.txt")).text();
  out.textContent = [first.status, second.status, await hex(whole), text.trim()].join(" ");
})().catch((error) => { out.textContent = "failed: " + error; });
</script>
"#;

#[test]
fn chromium_fetches_and_resumes() {
    if !is_there("chromium") {
        return skip("chromium is not installed");
    }
    let serving = Serving::start(&[]);
    std::fs::write(serving.path("www/page.html"), PAGE).unwrap();
    let profile = format!("--user-data-dir={}", serving.path("profile").display());
    let mut arguments = vec!["--headless", "--disable-gpu", "--no-first-run", &profile];
    // Its sandbox wants rights that a container's root does not give.
    arguments.extend(["--no-sandbox", "--disable-dev-shm-usage", "--virtual-time-budget=20000"]);
    arguments.extend(["--dump-dom", "{url}/page.html"]);
    let page = serving.succeed("chromium", &arguments);
    let page = String::from_utf8_lossy(&page);
    let mut expected = String::from("206 206 ");
    let sum = serving.succeed("sha256sum", &["www/big.bin"]);
    write!(expected, "{} hello, network", String::from_utf8_lossy(&sum[..64])).unwrap();
    assert!(page.contains(&expected), "{expected}\n{page}");
    serving.stop();
}
