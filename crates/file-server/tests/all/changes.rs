//! Files that change while they are served.

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use haul_testing::{eventually, until_full};

use crate::client::{Client, get};
use crate::helper::{Running, ServedDir, noise};

const BIG: usize = 32 << 20;

/// Requests a big file, and reads the beginning of the response: the server then waits for the
/// client. Returns the client and the number of bytes left.
fn begun(running: &Running) -> (Client, usize) {
    let mut client = Client::new(running.address);
    client.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.head();
    assert_eq!(head.status, 200);
    let declared: usize = head.field("content-length").unwrap().parse().unwrap();
    assert_eq!(client.read_exact(10).len(), 10);
    (client, declared - 10)
}

/// A download of a big file of which the client reads only the beginning.
struct Download {
    _place: ServedDir,
    path: PathBuf,
    bytes: Vec<u8>,
    running: Running,
    client: Client,
    /// The bytes that are not received.
    left: usize,
}

impl Download {
    fn begin(is_cold: bool) -> Self {
        let place = ServedDir::new();
        let bytes = noise(1, BIG);
        let path =
            if is_cold { place.write_cold("big", &bytes) } else { place.write("big", &bytes) };
        let running = place.serve(|_| {});
        let (client, left) = begun(&running);
        Self { _place: place, path, bytes, running, client, left }
    }
}

#[test]
fn truncated_file_ends_the_connection_without_padding() {
    for is_cold in [false, true] {
        let mut download = Download::begin(is_cold);
        std::fs::File::options().write(true).open(&download.path).unwrap().set_len(20).unwrap();
        let (rest, _) = download.client.rest();
        assert!(rest.len() < download.left, "{is_cold}");
        // Pages that the socket references have zeros after the new end of the file, and never bytes
        // of other files.
        let is_expected = |(now, before): (&u8, &u8)| now == before || *now == 0;
        assert!(rest.iter().zip(&download.bytes[10..]).all(is_expected), "{is_cold}");
        download.running.wait_until("the response is counted as cut", |stats| stats.cut_short == 1);
        assert_eq!(get(download.running.address, "/big", "").body, &download.bytes[..20]);
        download.running.wait_until("all buffers are released", |stats| stats.buffers_leased == 0);
    }
}

#[test]
fn file_rewritten_in_place_ends_a_response_with_parts_left_to_send() {
    for is_cold in [false, true] {
        let mut download = Download::begin(is_cold);
        let file = std::fs::File::options().write(true).open(&download.path).unwrap();
        file.write_all_at(&noise(2, BIG), 0).unwrap();
        assert!(download.client.rest().0.len() < download.left, "{is_cold}");
        download.running.wait_until("the response is counted as cut", |stats| stats.cut_short == 1);
    }
}

/// A short file is offered to the kernel in one call, which may accept only a part of it.
#[test]
fn partly_sent_short_file_that_is_rewritten_ends_the_connection() {
    const REQUESTS: usize = 20;
    const BYTES: usize = 1 << 20;
    let place = ServedDir::new();
    let path = place.write("file", noise(1, BYTES));
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    client.say("GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(REQUESTS));
    assert_eq!(client.answer("GET").status, 200);
    // All buffers are full, and one response is partly sent.
    until_full(client.stream());
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&noise(2, BYTES), 0).unwrap();
    assert!(client.rest().0.len() < (REQUESTS - 1) * BYTES);
    running.wait_until("the response is cut off", |stats| stats.cut_short == 1);
}

#[test]
fn file_to_which_bytes_are_appended_is_sent_as_long_as_it_was() {
    for is_cold in [false, true] {
        let mut download = Download::begin(is_cold);
        let mut file = std::fs::File::options().append(true).open(&download.path).unwrap();
        file.write_all(b"more").unwrap();
        assert!(download.client.read_exact(download.left) == download.bytes[10..], "{is_cold}");
    }
}

#[test]
fn replaced_file_is_sent_to_its_end() {
    for is_cold in [false, true] {
        let place = ServedDir::new();
        let bytes = noise(1, BIG);
        if is_cold {
            place.write_cold("big", &bytes)
        } else {
            place.write("big", &bytes)
        };
        let running = place.serve(|_| {});
        let (mut client, left) = begun(&running);
        place.write("new", "new");
        std::fs::rename(place.path("new"), place.path("big")).unwrap();
        assert_eq!(get(running.address, "/big", "").text(), "new");
        assert!(client.read_exact(left) == bytes[10..], "{is_cold}");
        assert_eq!(client.get("/big", "").text(), "new");
    }
}

#[test]
fn next_request_sees_a_changed_file() {
    let place = ServedDir::new();
    place.write("small", "first");
    place.write("big", vec![1; 100_000]);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let tags = |client: &mut Client| {
        ["/small", "/big"].map(|name| client.get(name, "").field("etag").unwrap().to_owned())
    };
    let before = tags(&mut client);
    assert_eq!(before, tags(&mut client));
    place.write("small", "again");
    place.write("big", vec![2; 100_000]);
    assert_eq!(client.get("/small", "").text(), "again");
    assert_eq!(client.get("/big", "").body, vec![2; 100_000]);
    let after = tags(&mut client);
    assert!(before[0] != after[0] && before[1] != after[1]);
    std::fs::remove_file(place.path("small")).unwrap();
    std::fs::remove_file(place.path("big")).unwrap();
    assert_eq!(client.get("/small", "").status, 404);
    assert_eq!(client.get("/big", "").status, 404);
    assert_eq!((running.stats().cached_files, running.stats().open_files), (0, 0));
}

#[test]
fn created_and_removed_encoded_forms_are_noticed() {
    let place = ServedDir::new();
    place.write("a", "plain");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let mut ask = |accept: &str| {
        let answer = client.get("/a", &format!("Accept-Encoding: {accept}\r\n"));
        (answer.text().to_owned(), answer.field("vary").is_some())
    };
    for (form, varies) in [("plain", false), ("gzip'd", true), ("plain", false)] {
        match varies {
            true => drop(place.write("a.gz", "gzip'd")),
            false => drop(std::fs::remove_file(place.path("a.gz"))),
        }
        for _ in 0..2 {
            assert_eq!(ask("gzip"), (form.to_owned(), varies));
            assert_eq!(ask("gzip, br"), (form.to_owned(), varies));
            assert_eq!(ask("identity"), ("plain".to_owned(), varies));
        }
    }
}

/// Many lookups in a directory make the server read it, and search for encoded forms no more.
#[test]
fn encoded_form_is_noticed_in_a_directory_that_was_read() {
    let place = ServedDir::new();
    for name in 0..200 {
        place.write(format!("dir/{name}"), "plain");
    }
    // A directory that changed in the last 3 s is not read.
    std::thread::sleep(Duration::from_secs(4));
    let valid = Duration::from_millis(400);
    let running = place.serve(|config| config.tiers.valid = valid);
    let mut client = Client::new(running.address);
    let mut ask = |name: &str| {
        let answer = client.get(&format!("/dir/{name}"), "Accept-Encoding: gzip\r\n");
        (answer.text().to_owned(), answer.field("vary").is_some())
    };
    let plain = ("plain".to_owned(), false);
    // The kernel has not cached that these names have no encoded forms, so that each search is a job
    // of a disk thread.
    let mut names = 0..200;
    eventually("lookups do not search", || {
        let name = names.next().expect("64 searches are enough").to_string();
        let jobs_before = running.stats().disk_jobs;
        assert_eq!(ask(&name), plain);
        names.start > 64 && running.stats().disk_jobs == jobs_before
    });
    for name in ["0", "199"] {
        place.write(format!("dir/{name}.gz"), "gzip'd");
        std::thread::sleep(valid);
        assert_eq!(ask(name), ("gzip'd".to_owned(), true));
        // Rewritten in place.
        place.write(format!("dir/{name}.gz"), "again");
        std::thread::sleep(valid);
        assert_eq!(ask(name), ("again".to_owned(), true));
        std::fs::remove_file(place.path(format!("dir/{name}.gz"))).unwrap();
        // The kernel has not cached that there is no other form: for as long again, requests do not
        // wait for the disk thread.
        std::thread::sleep(valid * 2);
        assert_eq!(ask(name), plain);
    }
    // Another directory at the same path.
    place.write("other/1", "plain");
    place.write("other/1.gz", "other");
    std::fs::rename(place.path("dir"), place.path("old")).unwrap();
    std::fs::rename(place.path("other"), place.path("dir")).unwrap();
    std::thread::sleep(valid);
    assert_eq!(ask("1"), ("other".to_owned(), true));
}

#[test]
fn changed_file_is_served_after_the_time_of_validity() {
    let place = ServedDir::new();
    // Without encoded forms, files are checked without being opened.
    let cases = [("small", true), ("small", false), ("long", true), ("long", false)];
    for (name, with_forms) in cases {
        let bytes = |byte: u8| vec![byte; if name == "small" { 5000 } else { 100_000 }];
        let path = place.write(name, bytes(1));
        let valid = Duration::from_millis(200);
        let running = place.serve(|config| {
            config.tiers.valid = valid;
            config.content.precompressed = with_forms;
        });
        let mut client = Client::new(running.address);
        let mut ask = || {
            // Unchanged files are checked, and served from memory.
            std::thread::sleep(valid);
            client.get(&format!("/{name}"), "")
        };
        assert!((0..3).all(|_| ask().body == bytes(1)), "{name}");
        std::fs::rename(place.write("new", bytes(2)), &path).unwrap();
        assert!(ask().body == bytes(2), "{name} was replaced");
        place.write(name, bytes(3));
        assert!(ask().body == bytes(3), "{name} was rewritten");
        std::fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert!(ask().body == bytes(3)[..100], "{name} was truncated");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ask().status, 404, "{name} was removed");
    }
}

#[test]
fn reset_download_releases_all_resources() {
    let place = ServedDir::new();
    place.write_cold("big", &noise(1, BIG));
    let running = place.serve(|_| {});
    for _ in 0..5 {
        let (client, _) = begun(&running);
        let mut stream = client.stream().try_clone().unwrap();
        drop(client);
        let mut some = [0; 1000];
        assert!(stream.read(&mut some).unwrap() > 0);
        // With bytes unread, closing is a reset.
        drop(stream);
    }
    running.wait_until("all connections are closed", |stats| {
        stats.cut_short == 5 && stats.connections_open == 0 && stats.buffers_leased == 0
    });
    assert_eq!(get(running.address, "/big", "Range: bytes=0-7\r\n").body, noise(1, 8));
}

/// Requests a target until the status changes, and checks that it stays: while one request checks
/// the file, others use the cached one.
fn await_status(address: haul_testing::Endpoint, target: &str, status: u16) {
    let mut client = Client::new(address);
    eventually(&format!("{target} has status {status}"), || {
        client.get(target, "").status == status
    });
    for _ in 0..100 {
        assert_eq!(client.get(target, "").status, status, "{target} has an old status again");
    }
}

#[test]
fn file_replaced_by_a_directory_and_removed_index_are_not_served() {
    let place = ServedDir::new();
    for name in ["small", "big", "dir/index.html", "long/index.html"] {
        place.write(name, vec![1; if name.len() == 5 { 10 } else { 100_000 }]);
    }
    let running = place.serve(|config| {
        config.content.listings = true;
        config.tiers.valid = Duration::from_millis(200);
    });
    for target in ["/small", "/big", "/dir/", "/long/"] {
        assert_eq!(get(running.address, target, "").body[0], 1);
    }
    for name in ["small", "big"] {
        std::fs::remove_file(place.path(name)).unwrap();
        std::fs::create_dir(place.path(name)).unwrap();
        await_status(running.address, &format!("/{name}"), 301);
    }
    for name in ["dir", "long"] {
        std::fs::remove_file(place.path(name).join("index.html")).unwrap();
        let mut client = Client::new(running.address);
        let target = format!("/{name}/");
        eventually(&format!("{target} is listed"), || {
            client.get(&target, "").text().starts_with("<!doctype")
        });
        for _ in 0..100 {
            assert!(client.get(&target, "").text().starts_with("<!doctype"), "{target}");
        }
    }
    assert_eq!((running.stats().cached_files, running.stats().open_files), (0, 0));
}

#[test]
fn small_file_that_became_big_is_not_served_from_the_cache() {
    let place = ServedDir::new();
    place.write("a", "small");
    let running = place.serve(|config| config.tiers.valid = Duration::from_millis(200));
    let mut client = Client::new(running.address);
    assert_eq!(client.get("/a", "").text(), "small");
    place.write("a", vec![1; 100_000]);
    eventually("the new file is served", || client.get("/a", "").body.len() == 100_000);
    for _ in 0..100 {
        assert_eq!(client.get("/a", "").body.len(), 100_000);
    }
    assert_eq!((running.stats().cached_files, running.stats().open_files), (0, 1));
}

#[test]
fn deleted_file_is_closed_without_requests() {
    let place = ServedDir::new();
    let path = place.write("long", vec![1; 100_000]);
    let running = place.serve(|config| config.tiers.valid = Duration::from_secs(3600));
    assert_eq!(get(running.address, "/long", "").status, 200);
    assert_eq!(running.stats().open_files, 1);
    std::fs::remove_file(path).unwrap();
    running.wait_until("the file is closed", |stats| stats.open_files == 0);
}
