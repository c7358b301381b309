//! Tests `haul dups` and its subcommands.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;

use crate::helper::{Finished, TestDir};

/// Creates two groups of duplicates in two directories: three names of a short content, two of
/// them hard links to one file, and two files of a longer content.
fn place() -> TestDir {
    let place = TestDir::new();
    for (name, text) in [("a/1", "short"), ("b/2", "short"), ("a/x", "longer"), ("b/y", "longer")] {
        place.write(name, text);
    }
    fs::hard_link(place.path("a/1"), place.path("a/link")).unwrap();
    place.write("b/unlike", "other!");
    place
}

/// Returns the lines of a report in fdupes format, with paths relative to the test directory. An
/// empty line follows each group.
fn names(place: &TestDir, ended: &Finished) -> Vec<String> {
    let root = format!("{}/", place.path("").canonicalize().unwrap().display());
    ended.lines().iter().map(|line| line.replace(&root, "")).collect()
}

fn dups(place: &TestDir, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["dups", "-f", "fdupes"], arguments].concat();
    names(place, &place.run(&arguments).code(0))
}

#[test]
fn equal_blocks_are_listed_and_shared() {
    let Some(image) = haul_testing::LoopImage::new("xfs", 512 << 20) else { return };
    let bytes = haul_testing::Random::from_environment().bytes(1 << 20);
    let (a, b) = (image.mount().join("it's a"), image.mount().join(".b"));
    fs::write(&a, &bytes).unwrap();
    fs::write(&b, [&[1; 64 << 10][..], &bytes].concat()).unwrap();
    let place = TestDir::new();
    let root = image.mount().to_str().unwrap();
    let run = |options: &[&str]| {
        place.run(&[&["dups", "blocks", "--block-size", "64K"], options, &[root]].concat())
    };
    let script = run(&["--dry-run"]).code(0);
    // Of both files, the first one in the order of the paths is kept.
    let command =
        format!("xfs_io -c 'dedupe /dev/fd/3 65536 0 1048576' '{root}/it'\\''s a' 3<{root}/.b");
    assert_eq!(script.lines(), [command]);
    script.stderr_contains(&["would share 1 range of 1 MiB, skipped 0"]);
    let shared = run(&["--json"]).code(0);
    let lines: Vec<Value> =
        shared.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["from_offset"], 65536, "{lines:?}");
    assert_eq!(lines[1]["shared_bytes"], 1 << 20, "{lines:?}");
    shared.stderr_contains(&["shared 1 range of 1 MiB"]);
    run(&[]).code(0).stderr_contains(&["shared 0 ranges of 0 B (1 MiB shared before)"]);
    assert_eq!(fs::read(&a).unwrap(), bytes);
    run(&["--block-size", "100K"]).code(2);
}

#[test]
fn report_has_the_format_of_fclones_longest_group_first() {
    let place = place();
    let text = place.run(&["dups", "b", "a"]).code(0);
    let lines: Vec<_> = names(&place, &text);
    assert!(lines[0].starts_with("# Report by haul ") && lines[1].starts_with("# Timestamp: 20"));
    assert_eq!(lines[2], "# Command: haul dups b a");
    assert_eq!(lines[4], "# Total: 27 B (27 B) in 5 files in 2 groups");
    assert_eq!(lines[5], "# Redundant: 16 B (16 B) in 3 files");
    assert!(lines[7].ends_with(", 6 B (6 B) * 2:"), "{}", lines[7]);
    assert_eq!(lines[8..10], ["    b/y", "    a/x"]);
    assert!(lines[10].ends_with(", 5 B (5 B) * 3:"), "{}", lines[10]);
    assert_eq!(lines[11..], ["    b/2", "    a/1", "    a/link"]);
    assert_eq!(text.stderr(), "");
}

#[test]
fn filters_select_the_files_to_compare() {
    let place = place();
    place.write("a/.hidden", "hidden!");
    place.write("b/z.log", "hidden!");
    place.write("a/empty", "");
    place.write("b/empty", "");
    place.write("b/.gitignore", "*.log\n");
    let long = &["a/x", "b/y", ""][..];
    let short = &["a/1", "a/link", "b/2", ""][..];
    for (arguments, expected) in [
        (&["--min", "6"][..], long),
        (&["--max", "5"], short),
        (&["--name", "[xy]"], long),
        (&["--name", "X", "--name", "Y", "-i"], long),
        (&["--path", "a/**", "--path", "**/2"], short),
        (&["--exclude", "**/[xy]"], short),
        (&["--exclude", "b"], &[]),
        (&["-x", "--name", "[a-z]"], long),
        (&["-x", "--name", "(?!x|y|un).*"], short),
        (&["--name", "!(x|y|unlike)"], short),
        (&["--exclude", "**/!(x|y)"], &[]),
        (&["--exclude", "*/!(x|y)"], long),
        (&["--exclude", "[ab]/*([xy])"], short),
        (&["-x", "--exclude", "[ab]/[^xy]*"], long),
        (&["-x", "--exclude", "b/.*"], &[]),
        (&["--depth", "0"], &[]),
        (&["-d", "1"], &[long, short].concat()),
        (&["-d", "1", "a", "b", "--name", "?"], &[long, &["a/1", "b/2", ""]].concat()),
        (&["-.", "-A", "--min", "7"], &["a/.hidden", "b/z.log", ""]),
        (&["-.", "--min", "7"], &[]),
        (&["--min", "0", "--max", "0"], &["a/empty", "b/empty", ""]),
        (&["-n", "2"], &[]),
        (&["-n", "2", "-H"], short),
        (&["-I", "a"], &[]),
        (&["--rf-under", "2", "--max", "6"], &["b/unlike", ""]),
        (&["--unique", "--max", "6"], &["b/unlike", ""]),
        (&["--base-dir", "a", ".", "../b", "--max", "5"], short),
        (&["--skip-content-hash", "--hash-fn", "blake3", "-t", "1", "--max", "5"], short),
    ] {
        assert_eq!(dups(&place, arguments), expected, "{arguments:?}");
    }
}

#[test]
fn paths_are_read_from_stdin_by_line_or_nul() {
    let place = TestDir::new();
    place.write("a\nb", "x");
    place.write("c", "x");
    place.write("d", "x");
    let ended = place.run_with(&["dups", "--stdin", "-0", "-f", "fdupes"], b"a\nb\0c\0").code(0);
    let root = place.path("").canonicalize().unwrap();
    let expected =
        ["a\nb", "c"].map(|name| [root.join(name).as_os_str().as_bytes(), b"\0"].concat());
    assert_eq!(ended.stdout(), [&expected.concat()[..], b"\0"].concat());
    let ended = place.run_with(&["dups", "--stdin", "-f", "fdupes"], b"c\nd\n").code(0);
    assert_eq!(names(&place, &ended), ["c", "d", ""]);
}

#[test]
fn any_name_round_trips_through_parsed_formats() {
    for format in ["--format=default", "--json"] {
        let place = TestDir::new();
        for name in [&b"plain"[..], b"new\nline", b"\xff\xfe", b"q'\"\\,", b"tab\t \x1b[31m"] {
            place.write(OsString::from_vec(name.to_vec()), "content");
        }
        let report = place.run(&["dups", format]).code(0);
        assert!(!report.stdout().contains(&0x1b), "control characters are escaped");
        place
            .run_with(&["dups", "remove"], report.stdout())
            .code(0)
            .stderr_contains(&["removed 4 files (28 B)"]);
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 1);
    }
}

#[test]
fn json_report_has_file_identities_and_statistics() {
    let place = place();
    let json: Value =
        serde_json::from_slice(place.run(&["dups", "--json"]).code(0).stdout()).unwrap();
    let (header, group) = (&json["header"], &json["groups"][0]);
    assert_eq!(header["stats"]["scanned_file_count"], 6);
    assert_eq!(header["command"], serde_json::json!(["haul", "dups", "--json"]));
    let meta = fs::metadata(place.path("a/x")).unwrap();
    assert_eq!(
        (group["file_len"].as_u64(), group["files"].as_array().unwrap().len()),
        (Some(6), 2)
    );
    assert_eq!(group["ids"][0]["inode"].as_u64(), Some(meta.ino()));
    assert_eq!(group["ids"][0]["device"].as_u64(), Some(meta.dev()));
    let fclones_report = place.run(&["dups", "-f", "json"]).code(0);
    let fclones_report: Value = serde_json::from_slice(fclones_report.stdout()).unwrap();
    assert_eq!(fclones_report["groups"], json["groups"]);
    place.run(&["dups", "--json", "--format", "csv"]).code(2).stderr_contains(&["--format"]);
}

#[test]
fn report_is_written_to_and_read_from_a_file() {
    let place = place();
    let ended = place.run(&["dups", "-o", "report"]).code(0);
    assert_eq!((ended.text(), ended.stderr()), ("", String::new()));
    place.run(&["dups", "link", "report", "--dry-run", "-o", "script"]).code(0);
    let script = fs::read_to_string(place.path("script")).unwrap();
    assert_eq!(script.lines().filter(|line| line.starts_with("ln -f ")).count(), 2);
    place
        .run(&["dups", "link", "report"])
        .code(0)
        .stderr_contains(&["replaced 2 files (11 B) with links"]);
    let inode = |name: &str| fs::metadata(place.path(name)).unwrap().ino();
    assert_eq!((inode("a/1"), inode("a/x")), (inode("b/2"), inode("b/y")));
    assert!(dups(&place, &["a", "b"]).is_empty(), "hard links are one replica");
}

#[test]
fn first_path_is_kept_unless_options_select_otherwise() {
    for (arguments, gone) in [
        (&[][..], ["b/2", "b/y"]),
        (&["--priority", "bottom"], ["b/2", "b/y"]),
        (&["--keep-root", "b"], ["a/1", "a/x"]),
        (&["--keep-name", "[2y]"], ["a/1", "a/x"]),
        (&["--path", "a/**"], ["a/1", "a/x"]),
        (&["--priority", "top"], ["a/1", "a/x"]),
    ] {
        let place = place();
        let report = place.run(&["dups", "a", "b"]).code(0);
        let arguments = [&["dups", "remove"], arguments].concat();
        place.run_with(&arguments, report.stdout()).code(0);
        assert!(gone.iter().all(|name| !place.path(name).exists()), "{arguments:?}");
        assert!(dups(&place, &["a", "b"]).is_empty(), "{arguments:?}");
        assert_eq!(dups(&place, &["--rf-under", "9"]).iter().filter(|l| l.is_empty()).count(), 3);
    }
}

#[test]
fn subcommand_inherits_options_of_the_search() {
    let place = place();
    place.write("c/3", "short");
    let report = place.run(&["dups", "-n", "2"]).code(0);
    place
        .run_with(&["dups", "remove"], report.stdout())
        .code(0)
        .stderr_contains(&["removed 1 file (5 B)"]);
    let report = place.run(&["dups", "-I", "b", "a"]).code(0);
    place.run_with(&["dups", "remove"], report.stdout()).code(0).stderr_contains(&["3 files"]);
    assert!(place.path("b/2").exists() && !place.path("a/1").exists());
    assert!(!place.path("a/link").exists(), "files below one path are one replica");
}

#[test]
fn files_changed_since_the_report_are_skipped() {
    let place = place();
    let report = place.run(&["dups", "--json"]).code(0);
    fs::write(place.path("b/2"), "SHORT").unwrap();
    let ended = place.run_with(&["dups", "remove"], report.stdout()).code(1);
    let ended = ended.stderr_contains(&["/b/2: ", "changed", "removed 1 file (6 B), skipped 1"]);
    assert!(!ended.stderr().contains("b/y"));
    assert_eq!(fs::read(place.path("b/2")).unwrap(), b"SHORT");
    let report = String::from_utf8(report.stdout().to_vec()).unwrap();
    let old = ["dups", "remove", "--modified-before", "2001-01-01"];
    place
        .run_with(&old, report.as_bytes())
        .code(1)
        .stderr_contains(&["modified later than 2001-01-01"]);
    place
        .run_with(&["dups", "remove", "-m", "soon"], report.as_bytes())
        .code(2)
        .stderr_contains(&["invalid time"]);
}

#[test]
fn incomplete_reports_are_refused() {
    let place = place();
    let report = place.run(&["dups"]).code(0);
    let cut = &report.stdout()[..report.stdout().len() - 12];
    for (report, reason) in
        [(cut, "line"), (b"", "empty input"), (b"/a\n/b\n\n", "unsupported format")]
    {
        let ended = place.run_with(&["dups", "remove"], report).code(3);
        ended.stderr_contains(&["nothing was changed", reason, "haul dups PATH"]);
    }
    place.run(&["dups", "remove", "nowhere"]).code(3).stderr_contains(&["cannot open nowhere"]);
    assert_eq!(dups(&place, &[]).len(), 7);
    let foreign = b"# Report by x 1\n# Timestamp: 2026-11-21 15:42:04.143 +0000\n# Command: x .\n";
    place
        .run_with(&["dups", "remove"], foreign)
        .code(2)
        .stderr_contains(&["cannot parse the search command"]);
}

#[test]
fn links_and_moves_preserve_content() {
    let place = place();
    let report = place.run(&["dups", "b", "a", "-H"]).code(0);
    let report = report.stdout();
    place.run_with(&["dups", "link", "--soft", "--name", "1"], report).code(0);
    assert_eq!(
        fs::read_link(place.path("a/1")).unwrap(),
        place.path("b/2").canonicalize().unwrap()
    );
    place.run_with(&["dups", "symlink", "--name", "x"], report).code(0);
    assert_eq!(fs::read(place.path("a/x")).unwrap(), b"longer");
    place.run_with(&["dups", "move", "gone", "--name", "link"], report).code(0);
    let root = place.path("").canonicalize().unwrap();
    let moved = place.path("gone").join(root.strip_prefix("/").unwrap()).join("a/link");
    assert_eq!(fs::read(moved).unwrap(), b"short");
    assert!(!place.path("a/link").exists());
}

#[test]
fn duplicate_directories_are_found_and_not_modified() {
    let place = place();
    for name in ["c/1", "c/sub/.x", "d/1", "d/sub/.x", "d/sub/empty", "c/sub/empty"] {
        place.write(name, if name.ends_with("empty") { "" } else { "same" });
    }
    assert_eq!(dups(&place, &["--dirs"]), ["c", "d", ""]);
    let report = place.run(&["dups", "--dirs"]).code(0);
    let ended = place.run_with(&["dups", "remove"], report.stdout()).code(1);
    ended.stderr_contains(&["not a regular file", "0 files"]);
    place.run(&["dups", "--dirs", "--name", "x"]).code(2);
}

#[test]
fn unreadable_files_are_reported_and_the_rest_compared() {
    let place = place();
    let shut = place.write("b/shut", "longer");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::read(&shut).is_ok();
    let ended = place.run(&["dups", "a", "b", "nowhere"]).code(3).stderr_contains(&["nowhere"]);
    assert!(is_root || ended.stderr().contains("b/shut"));
    assert!(ended.text().contains("a/x") && ended.text().contains("b/2"));
}

#[test]
fn digest_cache_does_not_change_the_report() {
    let place = place();
    let groups = |arguments: &[&str]| {
        let ended = place.run(&[&["dups", "a", "b"], arguments].concat()).code(0);
        ended
            .lines()
            .iter()
            .filter(|line| !line.starts_with('#'))
            .map(ToString::to_string)
            .collect()
    };
    let plain: Vec<String> = groups(&[]);
    for _ in 0..3 {
        assert_eq!(groups(&["--cache=digests"]), plain);
    }
    fs::write(place.path("digests"), "damaged").unwrap();
    place
        .run(&["dups", "a", "b", "--cache=digests"])
        .code(1)
        .stderr_contains(&["cannot use the digest cache digests"]);
    let home = place.path("home");
    let mut command = place.command(&["dups", "a", "--cache"]);
    command.env("XDG_CACHE_HOME", &home).output().unwrap();
    assert!(Path::new(&home).join("haul").exists() || !home.exists());
}

#[test]
fn transformed_content_is_compared() {
    let place = TestDir::new();
    place.write("a", "Hello");
    place.write("b", "HELLO");
    place.write("c", "hello!");
    assert_eq!(dups(&place, &["--transform", "tr A-Z a-z"]), ["a", "b", ""]);
    let report = place.run(&["dups", "--transform", "tr A-Z a-z"]).code(0);
    place
        .run_with(&["dups", "remove"], report.stdout())
        .code(0)
        .stderr_contains(&["removed 1 file (5 B)"]);
    place
        .run(&["dups", "--transform", "false"])
        .code(1)
        .stderr_contains(&["cannot transform", "exit status: 1"]);
    place.run(&["dups", "--transform", "'open"]).code(2).stderr_contains(&["quote"]);
}

#[test]
fn disk_kind_option_overrides_detection() {
    let place = TestDir::new();
    let mut bytes = vec![7; 500_000];
    place.write("a", &bytes);
    // The files differ at an offset that none of the samples contains. With --disk-kind rotating,
    // files of this size are read as a whole instead of sampled.
    bytes[100_000] = 8;
    place.write("b", &bytes);
    let kind = |kind| dups(&place, &["--skip-content-hash", "--disk-kind", kind]);
    assert_eq!(kind("solid"), ["a", "b", ""]);
    assert_eq!(kind("rotating"), [""; 0]);
    assert_eq!(dups(&place, &["--disk-kind", "solid"]), [""; 0]);
}

#[test]
fn invalid_patterns_and_options_exit_2() {
    let place = place();
    for arguments in [
        &["--name", "(", "-x"][..],
        &["--min", "many"],
        &["-n", "1", "--unique"],
        &["--isolate", "-L"],
        &["--stdin", "a"],
        &["-t", "0"],
        &["--hash-fn", "crc"],
        &["--disk-kind", "tape"],
        &["remove", "--output", "x"],
        &["remove", "--priority", "best"],
        &["move"],
    ] {
        place.run(&[&["dups"], arguments].concat()).code(2);
    }
}
