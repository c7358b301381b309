//! Damage never yields an older version, a deleted object, or a missing object without an error.

use haul_disk::Disk;
use haul_disk_sim::{Medium, MemoryDisk};
use haul_file_store::{Attributes, Options, Precondition};
use haul_testing::{PrintOnPanic, Random, replay_command, seed};

use crate::crash::open_on;
use crate::victim::{Answer, Victim, answer_in, names_key, settled};
use crate::{BUCKET, small, without_checkpoints};

/// Returns the medium of a store whose last act overwrites or deletes an object.
fn last_record_is_newest(deleted: bool) -> Medium {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    let put = |bytes: &[u8]| {
        let none = Attributes::new();
        drop(store.put(BUCKET, "key", bytes, &none, &Precondition::None).unwrap());
    };
    put(&[b'1'; 900]);
    if deleted {
        assert!(store.delete(BUCKET, "key").unwrap());
    } else {
        put(&[b'2'; 900]);
    }
    store.close().unwrap();
    settled(&disk)
}

const VOLUME: &str = "volumes/0000000001.segment";
const INDEX: &str = "volumes/0000000001.index";

/// Flips every bit of the last record's head, of its key, and of the 60 bytes before, with or
/// without the index.
fn flip_around_last_record(deleted: bool, with_index: bool) {
    let whole = last_record_is_newest(deleted);
    let current = if deleted { Answer::Absent } else { Answer::Bytes(vec![b'2'; 900]) };
    let at = {
        let mut whole = whole.clone();
        let bytes = whole.file(VOLUME);
        bytes.windows(9).rposition(|window| window == b"bucketkey").unwrap()
    };
    // The header of the record and the front of the needle precede the names. An object has an MD5
    // and a length of two bytes.
    let head_bytes = if deleted { 17 } else { 35 };
    let record = at - head_bytes - 32;
    for offset in record - 60..at + 9 {
        for bit in 0..8 {
            let mut medium = whole.clone();
            medium.file(VOLUME)[offset] ^= 1 << bit;
            let disk = MemoryDisk::on(&medium);
            if !with_index {
                disk.remove(INDEX).unwrap();
            }
            let (store, recovered) = open_on(&disk);
            let found = answer_in(&store, BUCKET, "key");
            let is_damaged = matches!(found, Answer::Damaged(_));
            assert!(found == current || is_damaged, "bit {bit} of {offset}: {found:?}");
            assert!(recovered.damage.len() <= 1, "bit {bit} of {offset}");
            assert!(!is_damaged || recovered.damage.len() == 1, "bit {bit} of {offset}");
            assert!(!with_index || recovered.hidden.is_empty(), "bit {bit} of {offset}");
            assert!(!with_index || !deleted || !is_damaged, "the deletion is known");
            if is_damaged && recovered.hidden.is_empty() {
                let verified = store.verify(&mut |_, _| {}).unwrap();
                assert!(names_key(&verified.damage, BUCKET, "key"), "{verified:?}");
            }
        }
    }
}

#[test]
fn flipped_bit_around_the_newest_version_never_serves_an_older_one() {
    flip_around_last_record(false, true);
    flip_around_last_record(false, false);
}

#[test]
fn flipped_bit_around_a_tombstone_never_restores_the_object() {
    flip_around_last_record(true, true);
    flip_around_last_record(true, false);
}

/// Damages a file at a random offset. Returns a description of the damage.
fn damage(medium: &mut Medium, name: &str, random: &mut Random) -> String {
    let mut bytes = medium.file(name);
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if used == 0 {
        return format!("{name}: empty");
    }
    let place = usize::try_from(random.below(used as u64)).unwrap();
    let (from, to) = match random.below(8) {
        0..4 => {
            let bit = random.below(8);
            bytes[place] ^= 1 << bit;
            return format!("bit {bit} of {name} at {place}");
        }
        4..6 => (place, place + 1 + usize::try_from(random.below(64)).unwrap()),
        6 => (place - place % 512, place - place % 512 + 512),
        _ => (place - place % 4096, place - place % 4096 + 4096),
    };
    let to = to.min(bytes.len());
    bytes[from..to].fill(0);
    format!("{name} from {from} to {to} zeroed")
}

fn pick(names: &[String], random: &mut Random) -> String {
    names[usize::try_from(random.below(names.len() as u64)).unwrap()].clone()
}

/// Damages one victim repeatedly, each time in another way.
fn sweep(seed: u64, rounds: u64, is_closed: bool, options: Options) {
    let has_checkpoints = options.index_memory_bytes < 1 << 20;
    let victim = Victim::new(seed, 90, is_closed, options);
    let mut names: Vec<String> =
        victim.medium.file_names().filter(|name| *name != "STORE").map(str::to_owned).collect();
    if !is_closed {
        // Without the index of the newest volume, a damaged last batch before a kill looks torn:
        // see `docs/media.md`. The loss of this index alone has no effect.
        let last = names.iter().filter(|name| name.ends_with(".index")).max().unwrap().clone();
        let disk = MemoryDisk::on(&victim.medium);
        disk.remove(&last).unwrap();
        assert_eq!(victim.check(&disk, &format!("{last} lost")), 0);
        names.retain(|name| *name != last);
    }
    let of = |end: &str| -> Vec<String> {
        names.iter().filter(|name| name.ends_with(end)).cloned().collect()
    };
    let (segments, mut indexes) = (of(".segment"), of(".index"));
    if has_checkpoints {
        indexes.extend(names.iter().filter(|name| name.starts_with("index/")).cloned());
        assert!(!of(".keys").is_empty() && of(".locations").len() == 1, "{names:?}");
    }
    assert!(segments.len() >= 3 && indexes.len() >= 2, "{names:?}");
    let (mut harmless, mut errors) = (0, 0);
    for round in 0..rounds {
        let mut random = Random(seed ^ (round << 32));
        let _context =
            PrintOnPanic(format!("round {round}, closed {is_closed}\n{}", replay_command(seed)));
        let mut medium = victim.medium.clone();
        let mut what = vec![match random.below(8) {
            0 => damage(&mut medium, &pick(&names, &mut random), &mut random),
            1 => damage(&mut medium, &pick(&indexes, &mut random), &mut random),
            _ => damage(&mut medium, &pick(&segments, &mut random), &mut random),
        }];
        // Sometimes a volume and its index, and the manifest.
        if random.below(3) == 0 {
            what.push(damage(&mut medium, &pick(&indexes, &mut random), &mut random));
            what.push(damage(&mut medium, &pick(&segments, &mut random), &mut random));
        }
        if random.below(6) == 0 {
            what.push(damage(&mut medium, "MANIFEST", &mut random));
        }
        let disk = MemoryDisk::on(&medium);
        if random.below(8) == 0 {
            let lost = pick(&indexes, &mut random);
            disk.remove(&lost).unwrap();
            what.push(format!("{lost} lost"));
        }
        let what = format!("round {round}: {}", what.join(", "));
        match victim.check(&disk, &what) {
            0 => harmless += 1,
            _ => errors += 1,
        }
        if random.below(4) == 0 {
            victim.check(&disk, &format!("reopened, {what}"));
        }
    }
    println!("SEED={seed}: {rounds} rounds, {errors} with errors, {harmless} without");
    assert!(errors > 0 && harmless > 0);
}

/// Returns the number of rounds of a sweep.
fn rounds() -> u64 {
    150 * haul_testing::depth()
}

#[test]
fn random_damage_to_a_closed_store_never_yields_wrong_responses() {
    sweep(seed(), rounds(), true, without_checkpoints());
    sweep(seed().wrapping_add(2), rounds(), true, small());
}

#[test]
fn random_damage_to_a_killed_store_never_yields_wrong_responses() {
    sweep(seed().wrapping_add(1), rounds(), false, without_checkpoints());
    sweep(seed().wrapping_add(3), rounds(), false, small());
}

/// Removes each file, and each pair of files.
#[test]
fn missing_files_never_yield_wrong_responses() {
    missing_files(&Victim::new(seed(), 90, true, without_checkpoints()));
    missing_files(&Victim::new(seed().wrapping_add(1), 90, true, small()));
}

fn missing_files(victim: &Victim) {
    let kinds = ["volumes/", "index/", "MANIFEST"];
    let names: Vec<String> = victim
        .medium
        .file_names()
        .filter(|name| kinds.iter().any(|kind| name.starts_with(kind)))
        .map(str::to_owned)
        .collect();
    for (n, first) in names.iter().enumerate() {
        for second in &names[n..] {
            let disk = MemoryDisk::on(&victim.medium);
            disk.remove(first).unwrap();
            if first != second {
                disk.remove(second).unwrap();
            }
            let what = format!("{first} and {second} missing");
            victim.check(&disk, &what);
            victim.check(&disk, &format!("reopened, {what}"));
        }
    }
}
