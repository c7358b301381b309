//! Compares the options of `fclones group` with those of `haul dups`.

use super::{output, place, program, verify, words};

/// The options of each case. The word after `<` is passed on stdin.
const CASES: &[&str] = &[
    "t",
    "t/a t/b",
    "DIFFERS -d 0 t",
    "-d 0 t/a/1 t/b/1",
    "-d 1 t",
    "--depth 2 t",
    "--depth 3 t",
    "-. t",
    "--hidden t",
    "-A t",
    "--no-ignore t",
    "-. -A t",
    "DIFFERS -L t",
    "--follow-links t/s t/a",
    "-S t",
    "--symbolic-links -H t",
    "-L -S t",
    "-H t/h",
    "--match-links t",
    "-I t/a t/b",
    "--isolate t/a t/b t/h",
    "DIFFERS -I -n 2 t/a t/b t/b/c",
    "-1 t",
    "--one-fs t",
    "-n 1 t",
    "-n 2 t",
    "--rf-over 3 t",
    "-n 0 t/a",
    "--rf-under 2 t",
    "--rf-under 3 t",
    "--unique t",
    "-s 0 t",
    "-s 1k t",
    "--min 1K t",
    "--min 1KiB t",
    "--min 1kb t",
    "-s 1M t",
    "--min 1MB t",
    "--min 1MiB t",
    "--min 0.5M t",
    "--min 0.5MiB t",
    "--min '0.5 MiB' t",
    "--min 1G t",
    "--max 1k t",
    "--max 1K t",
    "--max 1KiB t",
    "--max 1000B t",
    "--max 1M t",
    "--max 1MiB t",
    "--max 0.5M t",
    "--max 1G t",
    "--name 1 t",
    "--name '*.txt' t",
    "--name '*.TXT' --name '*o' t",
    "--name '*.txt' -i t",
    "--name '*.txt' --ignore-case t",
    "--path 't/b/**' t",
    "--path '**/c/*' t",
    "--exclude 't/b/**' t",
    "--exclude '**/z' t",
    "--exclude '**/z' --exclude '**/c' t",
    "-x --name '.*[.]txt' t",
    "-x -i --name '.*[.]txt' t",
    "--regex --path '.*/b/.*' t",
    "-x --exclude '.*/z' t",
    "--base-dir t a b",
    "--base-dir t --path '**/c/*' a b",
    "--stdin < t/a|t/b",
    "DIFFERS --stdin -I < t/a|t/b",
    "--skip-content-hash t",
    "--max-prefix-size 1k t",
    "--max-suffix-size 1KiB t",
    "--max-prefix-size 1MiB --max-suffix-size 1MiB t",
    "--cache t",
    "--threads 2 t",
    "-t 1 t",
    "--hash-fn metro t",
    "--hash-fn xxhash t",
    "--hash-fn blake3 t",
    "--hash-fn sha256 t",
    "--hash-fn sha512 t",
    "--hash-fn sha3-256 t",
    "--hash-fn sha3-512 t",
    "DIFFERS --transform 'head -c 1' t/a t/b",
    "DIFFERS --transform 'head -c 1 $IN' t/a t/b",
    "DIFFERS --transform 'head -c 1 $IN' --no-copy t/a t/b",
    "DIFFERS --transform 'cp $IN $OUT' t/a t/b",
    "DIFFERS --transform 'truncate -s 1 $IN' --in-place t/a t/b",
    "DIFFERS --transform 'head -c 1' -n 2 t/a t/b",
];

#[test]
fn groups_equal_those_of_fclones() {
    let place = place();
    verify(CASES, include_str!("groups.txt"), |case, is_fclones| {
        let (options, input) = case.split_once(" < ").unwrap_or((case, ""));
        let mut command = program(&place, is_fclones, "group")?;
        command.args(["-f", "fdupes"]).args(words(options));
        Some(match output(&place, command, &input.replace('|', "\n")) {
            Ok(text) => groups(&place, &text),
            Err(code) => format!("exit code {code}"),
        })
    });
}

/// Returns one line for each group, with paths relative to the test directory, in order. A directory
/// that is also the target of a link is visited once, by whichever of its paths is found first: its
/// files have the path without the link.
fn groups(place: &crate::helper::TestDir, text: &str) -> String {
    let root = format!("{}/", place.path("").canonicalize().unwrap().display());
    let name = |line: &str| line.trim().replace(&root, "").replace("t/s/dir/", "t/h/");
    let group = |group: &str| {
        let mut names: Vec<_> = group.lines().map(&name).collect();
        names.sort();
        names.join(" ")
    };
    let groups = text.split("\n\n").filter(|group| !group.trim().is_empty());
    let mut groups: Vec<_> = groups.map(group).collect();
    groups.sort();
    groups.join("\n")
}
