//! Tests `haul serve --remote` and `haul store restore`; the remote store is another `haul serve`.

mod disks;
mod engines;
mod loss;
mod read_only;
mod uploads;

use haul_testing::eventually;
use rustix::process::Signal;

use crate::helper::{Serving, TestDir, noise};

/// A remote store, and the options by which it is reached.
struct RemoteStore<P = Serving> {
    server: P,
    options: String,
}

impl RemoteStore {
    fn start(place: &TestDir) -> Self {
        let arguments = ["serve", "--data", "remote", "--listen", "127.0.0.1:0"];
        let mut command = place.command(&arguments);
        let server = TestDir::start(command.args(["--admin", "127.0.0.1:0"]));
        assert_eq!(server.request("PUT", "/backup", b"").0, 200);
        let endpoint = server.address("S3");
        let text = format!(
            "aws_endpoint = http://{endpoint}\naws_allow_http = true\n\
             aws_skip_signature = true\naws_region = us-east-1\n"
        );
        Self::new(place, server, text)
    }
}

impl<P> RemoteStore<P> {
    fn new(place: &TestDir, server: P, options: String) -> Self {
        let options = place.write("options", options);
        set_mode(&options);
        Self { server, options: options.to_str().unwrap().to_owned() }
    }

    /// Returns the arguments that name the copy.
    fn arguments(&self) -> [&str; 4] {
        ["--remote", "s3://backup/haul", "--remote-options", &self.options]
    }

    fn serve(&self, place: &TestDir, data: &str, more: &[&str]) -> Serving {
        TestDir::start(&mut self.command(place, data, more))
    }

    fn command(&self, place: &TestDir, data: &str, more: &[&str]) -> std::process::Command {
        let arguments = ["serve", "--data", data, "--listen", "127.0.0.1:0"];
        let mut command = place.command(&arguments);
        command.args(["--admin", "127.0.0.1:0"]).args(self.arguments()).args(more);
        command
    }

    fn restore(&self, place: &TestDir, data: &str) {
        self.restore_with(place, data, &[]);
    }

    fn restore_with(&self, place: &TestDir, data: &str, more: &[&str]) {
        let mut command = place.command(&["store", "--data", data, "restore"]);
        let output = command.args(self.arguments()).args(more).output().unwrap();
        let restored = haul_testing::Finished(output).code(0);
        let text = restored.text();
        assert!(text.contains("restored s3://backup/haul"), "{text}");
    }
}

/// Makes a file unreadable for other users.
fn set_mode(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn get(server: &Serving, path: &str) -> Vec<u8> {
    let (status, answer) = server.request("GET", path, b"");
    assert_eq!(status, 200, "{path}");
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    answer[head + 4..].to_vec()
}

#[test]
fn confirmed_writes_survive_the_loss_of_the_machine() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    for round in 0..3_u64 {
        let data = format!("data-{round}");
        if round > 0 {
            remote.restore(&place, &data);
        }
        let server = remote.serve(&place, &data, &["--ack", "remote"]);
        if round == 0 {
            assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
        }
        for earlier in 0..round {
            for number in 0..20 {
                let path = format!("/bucket/{earlier}/{number}");
                assert!(get(&server, &path) == noise(earlier * 100 + number, 3000), "{path}");
            }
            let big = get(&server, &format!("/bucket/{earlier}/big"));
            assert!(big == noise(earlier * 100, 9 << 20), "big object of round {earlier}");
        }
        for number in 0..20 {
            let content = noise(round * 100 + number, 3000);
            let path = format!("/bucket/{round}/{number}");
            assert_eq!(server.request("PUT", &path, &content).0, 200);
        }
        let big = noise(round * 100, 9 << 20);
        assert_eq!(server.request("PUT", &format!("/bucket/{round}/big"), &big).0, 200);
        server.signal(Signal::KILL);
        server.wait();
        std::fs::remove_dir_all(place.path(&data)).unwrap();
    }
    drop(remote.server);
}

#[test]
fn server_whose_copy_was_taken_over_refuses_writes() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let first = remote.serve(&place, "first", &["--ship-every", "50ms"]);
    assert_eq!(first.request("PUT", "/bucket", b"").0, 200);
    assert_eq!(first.request("PUT", "/bucket/one", b"1").0, 200);
    let metrics = || String::from_utf8_lossy(&admin(&first, "/metrics")).into_owned();
    eventually("the write is copied", || metrics().contains("haul_replication_behind_seconds 0\n"));
    // The first server also ships the watermark of an idle log. A store that was restored before is
    // then older than the copy, and is refused.
    let take_over = |attempt: u32| {
        let data = format!("second-{attempt}");
        remote.restore(&place, &data);
        let server = remote.serve(&place, &data, &["--ship-every", "50ms"]);
        (!server.line.is_empty()).then_some(server)
    };
    let second = (0..10).find_map(take_over).unwrap();
    assert_eq!(get(&second, "/bucket/one"), b"1");
    // The first server acknowledges until it notices, with its next copy.
    let mut refused = Vec::new();
    eventually("the first server refuses writes", || {
        let (status, answer) = first.request("PUT", "/bucket/two", b"2");
        refused = answer;
        status == 503
    });
    let text = String::from_utf8_lossy(&refused);
    assert!(text.contains("took over"), "{text}");
    assert!(String::from_utf8_lossy(&admin(&first, "/health")).contains("503"));
    assert_eq!(second.request("PUT", "/bucket/three", b"3").0, 200);
    first.signal(Signal::TERM);
    first.wait();
    let output = remote.command(&place, "first", &[]).output().unwrap();
    haul_testing::Finished(output).code(3).stderr_contains(&["took over", "restore"]);
}

/// Puts objects of 1 MB and one of 9 MiB, waits until they are copied, and stops the server.
fn put_and_stop(server: Serving, objects: u64) {
    assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
    for number in 0..objects {
        let path = format!("/bucket/{number}");
        assert_eq!(server.request("PUT", &path, &noise(number, 1_000_000)).0, 200);
    }
    assert_eq!(server.request("PUT", "/bucket/big", &noise(1, 9 << 20)).0, 200);
    stop(server);
}

fn stop(server: Serving) {
    server.signal(Signal::TERM);
    let (code, _, stderr) = server.wait();
    assert_eq!(code, Some(0), "{stderr}");
}

fn verify(server: &Serving, objects: u64) {
    for number in 0..objects {
        let path = format!("/bucket/{number}");
        assert!(get(server, &path) == noise(number, 1_000_000), "{path}");
    }
    assert!(get(server, "/bucket/big") == noise(1, 9 << 20));
}

#[test]
fn store_restored_on_demand_serves_before_everything_is_there() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    put_and_stop(remote.serve(&place, "first", &[]), 40);
    std::fs::remove_dir_all(place.path("first")).unwrap();
    remote.restore_with(&place, "second", &["--on-demand"]);
    let refused = place.run(&["store", "--data", "second", "ls"]);
    refused.code(3).stderr_contains(&["only in its remote copy", "haul serve --remote"]);
    let server = remote.serve(&place, "second", &[]);
    verify(&server, 40);
    eventually("everything is fetched", || !place.path("second/REMOTE").exists());
    verify(&server, 40);
    stop(server);
    place.run(&["store", "--data", "second", "verify"]).code(0);
}

#[test]
fn cold_objects_stay_only_in_the_copy() {
    let options = ["--local-space", "64MiB"];
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    put_and_stop(remote.serve(&place, "data", &[]), 120);
    let local_bytes = || -> u64 {
        let size = |dir: &str| -> u64 {
            let entries = std::fs::read_dir(place.path(dir)).unwrap();
            let parts = entries.map(|entry| entry.unwrap());
            let whole =
                parts.filter(|entry| !entry.file_name().to_string_lossy().contains("remote"));
            whole.map(|entry| entry.metadata().map_or(0, |found| found.len())).sum()
        };
        size("data/volumes") + size("data/objects")
    };
    assert!(local_bytes() > 120 << 20, "{}", local_bytes());
    let server = remote.serve(&place, "data", &options);
    // Spare volumes are not counted.
    eventually("cold volumes are dropped", || local_bytes() < 110 << 20);
    verify(&server, 120);
    stop(server);
    let server = remote.serve(&place, "data", &options);
    verify(&server, 120);
    stop(server);
}

#[test]
fn standby_takes_over_when_the_owner_is_killed() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let options = ["--ack", "remote", "--lease", "3s"];
    let owner = remote.serve(&place, "first", &options);
    assert_eq!(owner.request("PUT", "/bucket", b"").0, 200);
    let standby = remote.serve(&place, "second", &[&options[..], &["--standby"]].concat());
    let mut acknowledged = 0_u64;
    let mut put = |server: &Serving, count: u64| {
        for number in acknowledged..acknowledged + count {
            let content = noise(number, if number % 50 == 49 { 9 << 20 } else { 3000 });
            assert_eq!(server.request("PUT", &format!("/bucket/{number}"), &content).0, 200);
        }
        acknowledged += count;
    };
    put(&owner, 100);
    let state = || String::from_utf8_lossy(&admin(&standby, "/health")).into_owned();
    eventually("the standby follows", || state().contains("following the copy; its owner has"));
    assert!(state().starts_with("HTTP/1.1 503 "), "{}", state());
    let (status, answer) = standby.request("GET", "/bucket/1", b"");
    assert!(status == 503 && String::from_utf8_lossy(&answer).contains("is a standby"));
    put(&owner, 100);
    owner.signal(Signal::KILL);
    let killed = std::time::Instant::now();
    owner.wait();
    let mut last_put = || try_put(&standby, "/bucket/first", b"1") == Some(200);
    eventually("the standby acknowledges", &mut last_put);
    let seconds = killed.elapsed().as_secs_f64();
    println!("first PUT acknowledged {seconds:.2} s after the owner was killed");
    for number in 0..200 {
        let expected = noise(number, if number % 50 == 49 { 9 << 20 } else { 3000 });
        assert!(get(&standby, &format!("/bucket/{number}")) == expected, "{number}");
    }
    assert!(state().starts_with("HTTP/1.1 200 "), "{}", state());
    let output = remote.command(&place, "first", &options).output().unwrap();
    haul_testing::Finished(output).code(3).stderr_contains(&["took over", "restore"]);
    // The new owner is restarted with the same options, and continues.
    standby.signal(Signal::TERM);
    standby.wait();
    let again = remote.serve(&place, "second", &[&options[..], &["--standby"]].concat());
    assert_eq!(get(&again, "/bucket/first"), b"1");
    assert_eq!(again.request("PUT", "/bucket/second", b"2").0, 200);
    // Its lease is still held when another standby is asked to take over.
    let third = remote.serve(&place, "third", &[&options[..], &["--standby"]].concat());
    third.signal(Signal::USR1);
    eventually("the third one serves", || try_put(&third, "/bucket/third", b"3") == Some(200));
    eventually("the second one is fenced", || try_put(&again, "/bucket/lost", b"") == Some(503));
    assert_eq!(get(&third, "/bucket/second"), b"2");
}

#[test]
fn standby_needs_an_empty_directory_and_other_commands_refuse_it() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    place.write("used/file", b"x");
    let output = remote.command(&place, "used", &["--standby"]).output().unwrap();
    haul_testing::Finished(output).code(3).stderr_contains(&["neither empty nor a standby"]);
    let standby = remote.serve(&place, "second", &["--standby"]);
    let state = || String::from_utf8_lossy(&admin(&standby, "/health")).into_owned();
    eventually("there is no copy", || state().contains("the remote store has no copy yet"));
    let owner = remote.serve(&place, "first", &[]);
    assert_eq!(owner.request("PUT", "/bucket", b"").0, 200);
    eventually("the standby follows", || state().contains("has no lease"));
    standby.signal(Signal::TERM);
    standby.wait();
    place.run(&["store", "--data", "second", "ls"]).code(3).stderr_contains(&["STANDBY"]);
}

#[test]
fn store_is_restored_as_it_was_at_an_earlier_time() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let options = ["--ack", "remote", "--keep", "5min", "--keep-every", "50ms"];
    let server = remote.serve(&place, "data", &options);
    assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
    let big = noise(1, 9 << 20);
    assert_eq!(server.request("PUT", "/bucket/big", &big).0, 200);
    let restore = |data: &str, more: &[&str]| {
        let mut command = place.command(&["store", "--data", data, "restore"]);
        haul_testing::Finished(command.args(remote.arguments()).args(more).output().unwrap())
    };
    let restored = restore("now", &[]).code(0).text().to_owned();
    let time = restored.split(" as of ").nth(1).unwrap().split("Z:").next().unwrap();
    let time = format!("{time}Z");
    let start = std::time::Instant::now();
    eventually("the time passes", || start.elapsed().as_millis() > 200);
    assert_eq!(server.request("DELETE", "/bucket/big", b"").0, 204);
    for number in 0..3 {
        assert_eq!(server.request("PUT", &format!("/bucket/{number}"), b"new").0, 200);
    }
    drop(server);
    let restored = restore("then", &["--at", &time]).code(0).text().to_owned();
    assert!(restored.contains(&format!("as of {time}:")), "{restored}");
    let arguments = ["serve", "--data", "then", "--listen", "127.0.0.1:0"];
    let mut command = place.command(&arguments);
    let then = TestDir::start(command.args(["--admin", "127.0.0.1:0"]));
    assert!(get(&then, "/bucket/big") == big);
    assert_eq!(then.request("GET", "/bucket/0", b"").0, 404);
    drop(then);
    restore("old", &["--at", "2h ago"]).code(1).stderr_contains(&["no state", "oldest state"]);
    // It is older than the copy, and cannot continue it.
    let output = remote.command(&place, "then", &[]).output().unwrap();
    haul_testing::Finished(output).code(3).stderr_contains(&["never had a copy"]);
}

#[test]
fn restore_needs_an_empty_directory_and_a_copy() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    place.write("used/file", b"x");
    for (data, code, what) in [("used", 3, "not an empty directory"), ("new", 1, "no copy")] {
        let mut command = place.command(&["store", "--data", data, "restore"]);
        let output = command.args(remote.arguments()).output().unwrap();
        haul_testing::Finished(output).code(code).stderr_contains(&[what]);
    }
    assert!(!place.path("new").exists() && !place.path("new.incomplete").exists());
    let arguments = ["store", "restore", "--remote", "ftp://backup/haul"];
    place.run(&arguments).code(2).stderr_contains(&["use s3://"]);
}

/// Sends a PUT, and returns its status; `None` if the connection fails.
fn try_put(server: &Serving, path: &str, body: &[u8]) -> Option<u16> {
    use std::io::{Read, Write};
    let address = server.address("S3");
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

/// Returns the response of the admin address, with its head.
fn admin(server: &Serving, path: &str) -> Vec<u8> {
    use std::io::{Read, Write};
    let address = server.address("admin");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}
