//! Tests the pictures that commands draw.

use std::fs;

use crate::helper::TestDir;

#[test]
fn treemap_shows_the_directories_of_redundant_files() {
    let place = TestDir::new();
    for (name, text) in [("a/1", "short"), ("b/2", "short"), ("a/x", "longer"), ("b/y", "longer")] {
        place.write(name, text);
    }
    fs::hard_link(place.path("b/2"), place.path("b/link")).unwrap();
    place.write("b/c/z", "longer");
    place.run(&["dups", "--svg", "dups.svg", "a", "b"]).code(0);
    let picture = fs::read_to_string(place.path("dups.svg")).unwrap();
    // In b: one copy of the short content, without the hard link, and two of the longer one.
    assert!(picture.contains("17 B in 3 redundant copies"), "{picture}");
    assert!(picture.contains("Redundant bytes by directory. c: 6 B"), "{picture}");
}

#[test]
fn map_shows_the_live_and_dead_parts_of_volumes() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    // In a volume of 8 MiB, the first of three equal parts is dead.
    let object = vec![b'x'; 2_700_000];
    for key in ["b-1/1", "b-1/2", "b-1/1"] {
        place.run_with(&["store", "put", key], &object).code(0);
    }
    let ended = place.run(&["store", "map", "--svg", "map.svg"]).code(0);
    let lines = ended.lines();
    assert!(lines[0].contains("5.2 MiB live, 2.6 MiB dead"), "{}", ended.text());
    let bar = lines[0].split_whitespace().nth(1).unwrap();
    let count = |character| bar.chars().filter(|it| *it == character).count();
    assert!((14..=16).contains(&count('░')) && (29..=32).contains(&count('█')), "{bar}");
    assert!(lines.last().unwrap().starts_with("1 volume, 8 MiB: "), "{}", ended.text());
    let picture = fs::read_to_string(place.path("map.svg")).unwrap();
    assert!(picture.contains(">66 % live<"), "{picture}");
}
