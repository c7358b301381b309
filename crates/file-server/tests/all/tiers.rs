//! Where bytes come from, and what that does to the page cache.

use std::time::{Duration, Instant};

use haul_file_server::{Cold, Tier};

use crate::client::{Client, get};
use crate::helper::{Place, evict, noise, resident};

const BIG: usize = 8 << 20;

#[test]
fn a_cold_download_takes_no_page_of_the_cache() {
    for cold in [Cold::Copy, Cold::Splice] {
        let place = Place::new();
        let bytes = noise(1, BIG + 1234);
        let path = place.write_cold("big", &bytes);
        let running = place.serve(|config| config.tiers.cold = cold);
        assert!(get(running.address, "/big", "").body == bytes);
        assert_eq!(resident(&path), 0);
        let stats = running.after(1);
        assert_eq!(stats.tier(Tier::Direct), (1, bytes.len() as u64));
        assert_eq!((stats.fallbacks, stats.carriers_refused), (0, 0));
        assert!(stats.carriers_made <= 2, "two that take turns: {stats:?}");
    }
}

/// What the kernel holds back comes a fifth of a second later; here twenty times in a row.
#[test]
fn the_last_bytes_of_what_is_in_memory_do_not_wait() {
    let place = Place::new();
    let bytes = noise(2, (3 << 20) + 100);
    place.write("big", &bytes);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let begun = Instant::now();
    for _ in 0..20 {
        assert!(client.get("/big", "").body == bytes);
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(running.after(20).tier(Tier::Resident).0, 20);
}

#[test]
fn without_carriers_a_cold_download_still_leaves_the_cache_as_it_was() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|config| config.tiers.carriers_max = 0);
    assert!(get(running.address, "/big", "").body == bytes);
    let stats = running.after(1);
    assert_eq!(stats.tier(Tier::Uncached), (1, bytes.len() as u64));
    assert!(stats.fallbacks > 0);
    // What was read ahead may stay, where the kernel can drop pages at all (6.14).
    assert!(resident(&path) <= (BIG / 2) as u64, "{} of {BIG}", resident(&path));
}

#[test]
fn a_cold_file_asked_for_again_and_again_becomes_cached() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|_| {});
    let mut kept = Vec::new();
    for _ in 0..4 {
        assert!(get(running.address, "/big", "").body == bytes);
        kept.push(resident(&path));
    }
    assert_eq!(kept, [0, 0, BIG as u64, BIG as u64], "the third time it is let in");
    let stats = running.after(4);
    let of = |tier| stats.tier(tier).1;
    assert_eq!(of(Tier::Direct), 2 * BIG as u64);
    // The kernel reads ahead: some of the third download is there before it is asked for.
    assert!(of(Tier::Read) > 0 && of(Tier::Resident) >= BIG as u64, "{stats:?}");
}

#[test]
fn only_the_part_that_is_wanted_becomes_cached() {
    let place = Place::new();
    let path = place.write_cold("big", &noise(1, BIG));
    // The kernel reads ahead as far as it likes, so the part is the last one.
    let running = place.serve(|_| {});
    for _ in 0..5 {
        let part = get(running.address, "/big", "Range: bytes=-100000\r\n");
        assert_eq!(part.body.len(), 100_000);
    }
    let there = resident(&path);
    assert!((100_000..=1 << 20).contains(&there), "{there}");
    assert_eq!(running.after(5).tier(Tier::Resident).0, 2);
}

#[test]
fn a_file_fetched_in_pieces_leaves_no_page_in_the_cache() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for (number, piece) in bytes.chunks(256 << 10).enumerate() {
        let start = number * (256 << 10);
        let range = format!("Range: bytes={start}-{}\r\n", start + piece.len() - 1);
        assert!(client.get("/big", &range).body == piece);
    }
    assert_eq!(resident(&path), 0);
}

#[test]
fn a_file_too_long_for_memory_is_never_let_in() {
    let place = Place::new();
    let path = place.write_cold("big", &noise(1, BIG));
    let running = place.serve(|config| config.tiers.promote_bytes_max = Some(BIG as u64 - 1));
    for _ in 0..5 {
        assert_eq!(get(running.address, "/big", "").body.len(), BIG);
    }
    assert_eq!(resident(&path), 0);
}

#[test]
fn what_is_in_memory_is_sent_from_there() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    place.write("big", &bytes);
    place.write("small", "12345");
    let running = place.serve(|_| {});
    let twice = || {
        assert!(get(running.address, "/big", "").body == bytes);
        assert_eq!(get(running.address, "/small", "").text(), "12345");
    };
    twice();
    let first = running.after(2);
    assert_eq!(first.disk_jobs, 2, "to see that there are no encoded forms");
    twice();
    let stats = running.after(4);
    assert_eq!(stats.tier(Tier::Resident), (3, 2 * BIG as u64 + 5), "the small one was read once");
    assert_eq!(stats.tier(Tier::Memory), (1, 5));
    assert_eq!((stats.disk_jobs, stats.carriers_made), (2, 0), "nobody waited for a disk");
}

/// The kernel does not say what is in memory of a file that is not ours.
#[test]
fn what_is_in_memory_is_sent_from_there_although_it_belongs_to_somebody_else() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    let path = place.write("big", &bytes);
    place.write("small", "12345");
    let Some(running) = place.serve_as_nobody() else { return };
    assert!(get(running.address, "/big", "").body == bytes);
    assert_eq!(get(running.address, "/small", "").text(), "12345");
    let stats = running.after(2);
    assert_eq!(stats.tier(Tier::Resident), (2, BIG as u64 + 5), "{stats:?}");
    assert_eq!((stats.disk_jobs, stats.carriers_made), (2, 0), "but for encoded forms");
    evict(&path);
    // Until then the server assumes that the file is still in memory.
    std::thread::sleep(Duration::from_millis(60));
    assert!(get(running.address, "/big", "").body == bytes);
    let stats = running.after(3);
    assert_eq!(stats.tier(Tier::Direct), (1, BIG as u64), "{stats:?}");
    // What was tried to be read at once may be there now.
    assert!(resident(&path) <= BIG as u64 / 64, "{}", resident(&path));
}

#[test]
fn a_file_that_is_partly_in_memory_is_sent_from_both() {
    let place = Place::new();
    let bytes = noise(1, BIG);
    let half = BIG as u64 / 2;
    // The kernel may reclaim pages in any round.
    let rounds = [0, 1, 2].map(|round| {
        let path = place.write_cold(&format!("big{round}"), &bytes);
        let file = std::fs::File::open(&path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut vec![0; BIG / 2], 0).unwrap();
        let running = place.serve(|_| {});
        assert!(get(running.address, &format!("/big{round}"), "").body == bytes);
        let stats = running.after(1);
        let sent = [Tier::Resident, Tier::Direct].map(|tier| stats.tier(tier).1);
        (sent, resident(&path))
    });
    assert!(rounds.contains(&([half, half], half)), "{rounds:?}");
}

#[test]
fn small_files_are_read_once_and_no_longer_ones_are_kept() {
    let place = Place::new();
    let path = place.write_cold("small", &noise(1, 60_000));
    place.write("longer", noise(2, 70_000));
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for _ in 0..3 {
        assert_eq!(client.get("/small", "").body.len(), 60_000);
        assert_eq!(client.get("/longer", "").body.len(), 70_000);
    }
    evict(&path);
    assert_eq!(client.get("/small", "").body, noise(1, 60_000), "not from the page cache");
    let stats = running.after(7);
    assert_eq!((stats.tier(Tier::Read).0, stats.tier(Tier::Memory).0), (1, 3));
    assert_eq!((stats.cached_files, stats.open_files), (1, 1));
    assert!((60_000..65_000).contains(&stats.cached_bytes), "{stats:?}");
}

#[test]
fn a_file_without_encoded_forms_is_kept_once_for_all_clients() {
    let place = Place::new();
    place.write("small", "12345");
    place.write("longer", noise(2, 70_000));
    place.write("formed", "12345");
    place.write("formed.gz", "1234");
    let running = place.serve(|_| {});
    for accept in ["", "gzip", "br, gzip", "zstd;q=0.5, gzip", "*"] {
        for target in ["/small", "/longer", "/formed"] {
            get(running.address, target, &format!("Accept-Encoding: {accept}\r\n"));
        }
    }
    let stats = running.after(15);
    assert_eq!((stats.cached_files, stats.open_files), (1 + 5, 1), "{stats:?}");
}

#[test]
fn the_cache_stays_within_its_bounds() {
    let place = Place::new();
    for name in 0..200 {
        place.write(name.to_string(), noise(name, 20_000));
    }
    let bound = 1 << 20;
    let running = place.serve(|config| config.tiers.cache_bytes = bound);
    let mut client = Client::new(running.address);
    for name in (0..200).chain(0..200) {
        assert_eq!(client.get(&format!("/{name}"), "").body, noise(name, 20_000));
    }
    let stats = running.stats();
    assert!(stats.cached_bytes <= bound && stats.cached_files > 20, "{stats:?}");
    let running = place.serve(|config| config.tiers.cache_bytes = 0);
    for _ in 0..2 {
        assert_eq!(get(running.address, "/7", "").body, noise(7, 20_000));
    }
    let stats = running.after(2);
    assert_eq!((stats.cached_files, stats.tier(Tier::Resident).0), (0, 2));
}

#[test]
fn for_a_while_a_file_is_believed_to_be_what_it_was() {
    let place = Place::new();
    place.write("a", "first");
    let running = place.serve(|config| config.tiers.valid = Duration::from_hours(1));
    assert_eq!(get(running.address, "/a", "").text(), "first");
    place.write("a", "second");
    assert_eq!(get(running.address, "/a", "").text(), "first");
}
