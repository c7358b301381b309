//! Tests how options are parsed: the messages for wrong values, lists of values, and defaults.

use clap::Parser;
use haul_bench::relay::Part;

use super::{BenchCommand, Cli};

#[test]
fn wrong_options_name_the_expected_values() {
    for (line, expected) in [
        ("app-cache --dir d --memory 1MiB", "64MiB"),
        ("random-read --dir d --size 5000B", "4KiB"),
        ("random-read --dir d --file-size 4KiB", "1MiB"),
        ("random-read --dir d --readers 0", "1..="),
        ("sequential-read --dir d --advice often", "sequential"),
        ("sequential-read --dir d --windows 1GiB", "64MiB"),
        ("relay --dir d --only all", "messages"),
        ("relay --dir d --sizes 0", "1 B"),
        ("relay --dir d --flows 65", "64"),
        ("files --dir d --only tepid", "latency"),
        ("files --dir d --memory 1MiB", "32MiB"),
        ("serve --dir d --only head", "get"),
        ("serve --dir d --sizes 2GiB", "1GiB"),
        ("serve --dir d --seconds 500ms", "whole seconds"),
        ("s3 --dir d --only head", "put"),
        ("s3 --dir d --sizes 32MiB", "16MiB"),
        ("s3 --dir d --list-keys 0", "1..="),
        ("read-order --drive seagate", "travelstar-7k320"),
        ("read-order --fs ntfs", "xfs"),
        ("pacing --dir d --windows 4KiB", "256KiB"),
        ("pacing --dir d --windows 8MiB,65MiB", "64MiB"),
        ("pacing --dir d --bulk 1MiB", "4MiB"),
        ("pacing --dir d --dirty-limit 4KiB", "1MiB"),
        ("pacing --dir d --virtual-disk zfs", "ext4-nojournal"),
        ("random-write --drive seagate", "none"),
        ("random-write --ways backward", "sorted-merged"),
        ("random-write --batches 0", "1..="),
        ("random-write --file-size 1KiB", "1MiB"),
        ("write-modes --dir d --modes sync", "recycled+fdatasync"),
        ("write-modes --dir d --virtual-disk zfs", "ext4-nojournal"),
        ("write-modes --dir d --sizes 17MiB", "16MiB"),
        ("write-modes --dir d --sizes 0", "1 B"),
        ("write-modes --dir d --records 0", "1..="),
        ("write-modes --dir d --rounds 0", "1..="),
        ("log --dir d --writers 0", "1..="),
        ("log --dir d --sizes 2MiB", "1MiB"),
        ("log --dir d --sizes 0", "1 B"),
        ("read-order --longest 3KiB", "power of two"),
        ("random-write --record-size 5KiB", "4KiB"),
        ("write-modes --dir d --protected-cache", "--virtual-disk"),
        ("readahead --dir d --sizes 5000B", "4KiB"),
        ("splice --sizes 0", "1 B"),
        ("duplicates --dir d --corpus huge", "spinning"),
        ("duplicates --dir d --files 1", "2..="),
    ] {
        let words = ["haul-bench"].into_iter().chain(line.split(' '));
        let message = Cli::try_parse_from(words).unwrap_err().to_string();
        assert!(message.contains(expected), "{line}: {message}");
    }
}

#[test]
fn lists_are_separated_by_commas() {
    let line = "haul-bench relay --dir d --rivals haproxy,go --only bulk,idle";
    let BenchCommand::Relay(args) = Cli::parse_from(line.split(' ')).command else { panic!() };
    assert_eq!(args.options.net.rivals.map(|rivals| rivals.len()), Some(2));
    assert_eq!(args.options.parts, [Part::Bulk, Part::Idle]);
}

#[test]
fn defaults_measure_the_documented_ratios() {
    let parsed = |line: &str| Cli::parse_from(line.split(' ')).command;
    let BenchCommand::Log(log) = parsed("haul-bench log --dir d") else { panic!() };
    assert_eq!((log.options.writers, log.options.sizes), (vec![1, 16], vec![4096]));
    assert!(log.options.rounds >= 5);
    let BenchCommand::Serve(serve) = parsed("haul-bench serve --dir d") else { panic!() };
    assert_eq!(serve.options.object_bytes, [4 << 10, 64 << 10, 1 << 20, 64 << 20]);
    assert!(serve.options.parts.len() == 2 && serve.options.net.rounds >= 5);
    let line = "haul-bench write-modes --dir d --modes append,recycled+fdatasync";
    let BenchCommand::WriteModes(modes) = parsed(line) else { panic!() };
    assert_eq!((modes.options.modes.len(), modes.options.sizes), (2, vec![512, 4096, 65536]));
}
