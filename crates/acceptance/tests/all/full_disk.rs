//! Tests that on a full disk writes fail with a clear error, no object is lost, and deletion frees
//! space.

use haul_testing::{LoopImage, noise};

use crate::http::{Client, Response};
use crate::keys::target;
use crate::program;
use crate::server::{SMALL_VOLUMES, Server};

const DISK_BYTES: u64 = 64 << 20;

/// The length of an object in bytes: small enough to be stored in a volume, a file of many objects,
/// and large enough to fill the disk quickly.
const OBJECT_BYTES: usize = 256 << 10;

fn content(number: usize) -> Vec<u8> {
    noise(number as u64, OBJECT_BYTES)
}

fn put(client: &mut Client, number: usize) -> Response {
    let target = target("full", &format!("{number:04}"));
    client.request("PUT", &target, &content(number)).unwrap()
}

/// Puts numbered objects until one is rejected; returns its number and the response.
fn fill(client: &mut Client, from: usize) -> (usize, Response) {
    let rejected = (from..from + 1000).find_map(|number| {
        let response = put(client, number);
        (response.status != 200).then_some((number, response))
    });
    rejected.expect("a disk of 64 MiB does not hold 250 MiB")
}

fn assert_intact(client: &mut Client, numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        let target = target("full", &format!("{number:04}"));
        let response = client.request("GET", &target, b"").unwrap();
        assert!(response.status == 200 && response.body == content(number), "{number} is lost");
    }
}

#[test]
fn full_disk_rejects_writes_and_recovers_after_deletion() {
    let Some(image) = LoopImage::new("ext4", DISK_BYTES) else { return };
    let data = image.mount().join("data");
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    assert_eq!(client.request("PUT", "/full", b"").unwrap().status, 200);

    let (count, rejection) = fill(&mut client, 0);
    assert_eq!(rejection.status, 507, "{}", rejection.text());
    assert!(rejection.text().contains("full"), "{}", rejection.text());
    println!("{count} objects of {OBJECT_BYTES} bytes were stored");
    assert!(count * OBJECT_BYTES > 16 << 20, "most of the disk is still free");
    assert_intact(&mut client, 0..count);

    // The objects are also intact after a restart, with the disk still full.
    server.kill();
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    assert_intact(&mut client, 0..count);

    for number in 0..count / 2 {
        let target = target("full", &format!("{number:04}"));
        let response = client.request("DELETE", &target, b"").unwrap();
        assert_eq!(response.status, 204, "deleting {number}: {}", response.text());
    }
    server.stop();
    program::assert_success(&program::store("compact", &data, SMALL_VOLUMES));
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    let (more, _) = fill(&mut client, count);
    assert!(more > count, "no space was freed by deleting half of the objects");
    assert_intact(&mut client, count / 2..more);
    server.stop();
    program::assert_success(&program::store("verify", &data, SMALL_VOLUMES));
}
