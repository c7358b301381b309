//! A disk that becomes full refuses with a clear error, loses nothing, and lets itself be emptied.

use haul_test_image::LoopImage;

use crate::http::{Answer, Client};
use crate::keys::target;
use crate::program;
use crate::random::Random;
use crate::server::{SMALL_VOLUMES, Server};

const DISK_BYTES: u64 = 64 << 20;

/// Small enough for a volume, large enough to fill the disk soon.
const OBJECT_BYTES: usize = 256 << 10;

fn content(number: usize) -> Vec<u8> {
    Random::new(number as u64).bytes(OBJECT_BYTES)
}

fn put(client: &mut Client, number: usize) -> Answer {
    let target = target("full", &format!("{number:04}"));
    client.request("PUT", &target, &content(number)).unwrap()
}

/// Puts numbered objects until one is refused; gives the number of that one, and the answer.
fn fill(client: &mut Client, from: usize) -> (usize, Answer) {
    let refused = (from..from + 1000).find_map(|number| {
        let answer = put(client, number);
        (answer.status != 200).then_some((number, answer))
    });
    refused.expect("a disk of 64 MiB does not hold 250 MiB")
}

fn assert_intact(client: &mut Client, numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        let target = target("full", &format!("{number:04}"));
        let answer = client.request("GET", &target, b"").unwrap();
        assert!(answer.status == 200 && answer.body == content(number), "{number} is lost");
    }
}

#[test]
fn a_full_disk_refuses_loses_nothing_and_can_be_emptied() {
    let Some(image) = LoopImage::new("ext4", DISK_BYTES) else { return };
    let data = image.mount().join("data");
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    assert_eq!(client.request("PUT", "/full", b"").unwrap().status, 200);

    let (count, refusal) = fill(&mut client, 0);
    assert_eq!(refusal.status, 507, "{}", refusal.text());
    assert!(refusal.text().contains("full"), "{}", refusal.text());
    println!("{count} objects of {OBJECT_BYTES} bytes went in");
    assert!(count * OBJECT_BYTES > 16 << 20, "most of the disk is still free");
    assert_intact(&mut client, 0..count);

    // Also after a restart, on a disk as full as before.
    server.kill();
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    assert_intact(&mut client, 0..count);

    for number in 0..count / 2 {
        let target = target("full", &format!("{number:04}"));
        let answer = client.request("DELETE", &target, b"").unwrap();
        assert_eq!(answer.status, 204, "deleting {number}: {}", answer.text());
    }
    server.stop();
    program::assert_success(&program::store("compact", &data, SMALL_VOLUMES));
    let server = Server::start_with(&data, SMALL_VOLUMES);
    let mut client = server.client();
    let (more, _) = fill(&mut client, count);
    assert!(more > count, "nothing goes in although half of it went out");
    assert_intact(&mut client, count / 2..more);
    server.stop();
    program::assert_success(&program::store("verify", &data, SMALL_VOLUMES));
}
