//! Tests `haul sum`, and compares its lists with other checksum programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use haul_testing::skip;

use crate::helper::{Finished, TestDir, noise};

fn place() -> TestDir {
    let place = TestDir::new();
    for (name, bytes) in [("d/a", 0), ("d/b/c", 5000), ("d/b/e", 70_000), ("d/z", 9 << 20)] {
        place.write(name, noise(bytes as u64, bytes));
    }
    place
}

/// Runs another program in the test directory. Returns `None` if the program is not installed.
fn other(place: &TestDir, program: &str, arguments: &[&str]) -> Option<std::process::Output> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(place.path("")).stdin(Stdio::null());
    match command.output() {
        Ok(output) => Some(output),
        Err(_) => {
            skip(&format!("requires {program}"));
            None
        }
    }
}

fn sum(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["sum"], arguments].concat())
}

#[test]
fn lists_equal_those_of_other_programs() {
    let place = place();
    for name in [&b"d/new\nline"[..], b"d/back\\slash", b"d/ blanks "] {
        place.write(OsStr::from_bytes(name), "x");
    }
    let files = ["d/a", "d/b/c", "d/z", "d/new\nline", "d/back\\slash", "d/ blanks "];
    for (hash, program) in
        [("sha256", "sha256sum"), ("sha512", "sha512sum"), ("md5", "md5sum"), ("blake3", "b3sum")]
    {
        let ours = sum(&place, &[&["--hash", hash], &files[..]].concat()).code(0);
        let Some(theirs) = other(&place, program, &files) else { continue };
        assert_eq!(ours.stdout(), theirs.stdout, "{program}");
        // b3sum does not support lines that end with NUL, and --tag only in recent versions.
        for form in ["--tag", "--zero"].into_iter().filter(|_| program != "b3sum") {
            let ours = sum(&place, &[&["--hash", hash, form], &files[..]].concat()).code(0);
            let theirs = other(&place, program, &[&[form], &files[..]].concat()).unwrap();
            assert_eq!(ours.stdout(), theirs.stdout, "{program} {form}");
        }
        // The other program must be able to verify a list that `haul sum` wrote.
        place.write("list", sum(&place, &["--hash", hash, "d"]).code(0).stdout());
        let checked = other(&place, program, &["-c", "list"]).unwrap();
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert_eq!(text.matches(": OK").count(), 7, "{program}: {text}");
    }
}

#[test]
fn files_are_listed_in_path_order() {
    let place = place();
    place.write("d/.hidden", "x");
    place.write("other", "abc");
    let lines = sum(&place, &["other", "d", "d/b", "other"]).code(0);
    let names: Vec<_> = lines.lines().iter().map(|line| line[66..].to_owned()).collect();
    assert_eq!(names, ["other", "d/.hidden", "d/a", "d/z", "d/b/c", "d/b/e"]);
    let abc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    assert_eq!(lines.lines()[0], format!("{abc}  other"));
    assert_eq!(place.run_with(&["sum"], b"abc").code(0).text(), format!("{abc}  -\n"));
    let mixed = place.run_with(&["sum", "d/a", "-", "other"], b"abc").code(0);
    assert_eq!(mixed.lines()[1..], [format!("{abc}  -"), format!("{abc}  other")]);
}

#[test]
fn check_reports_changed_missing_and_added_files() {
    let place = place();
    place.write("list", sum(&place, &["d"]).code(0).stdout());
    let well = sum(&place, &["--check", "list", "d"]).code(0);
    assert_eq!(well.lines(), ["d/a: OK", "d/b/c: OK", "d/b/e: OK", "d/z: OK"]);
    assert_eq!(sum(&place, &["--check", "list", "--quiet"]).code(0).text(), "");

    place.write("d/b/c", "changed");
    place.write("d/new", "added");
    std::fs::remove_file(place.path("d/a")).unwrap();
    let ended = sum(&place, &["-c", "list", "d", "--quiet"]).code(1);
    let expected = ["d/a: FAILED open or read", "d/b/c: FAILED", "d/new: ADDED"];
    assert_eq!(ended.lines(), expected);
    ended.stderr_contains(&["1 file changed", "1 file missing", "1 file not in the list"]);
    let silent = sum(&place, &["-c", "list", "d", "--status"]).code(1);
    assert_eq!((silent.text(), silent.stderr().as_str()), ("", ""));
    let ended = sum(&place, &["-c", "list", "--quiet", "--ignore-missing"]).code(1);
    assert_eq!(ended.lines(), ["d/b/c: FAILED"]);
}

#[test]
fn lists_of_other_programs_are_verified() {
    let place = place();
    for (hash, program) in [("sha256", "sha256sum"), ("md5", "md5sum"), ("blake3", "b3sum")] {
        let Some(plain) = other(&place, program, &["d/a", "d/z"]) else { continue };
        place.write("list", plain.stdout);
        let ended = sum(&place, &["--hash", hash, "--check", "list"]).code(0);
        assert_eq!(ended.lines(), ["d/a: OK", "d/z: OK"], "{program}");
        if program != "b3sum" {
            // A line written with --tag names its hash function, so --hash is not needed.
            place.write("list", other(&place, program, &["--tag", "d/b/c"]).unwrap().stdout);
            assert_eq!(sum(&place, &["--check", "list"]).code(0).text(), "d/b/c: OK\n");
        }
    }
    // The list has one file under two names, and one of these names twice.
    let both = sum(&place, &["d/a"]).code(0).text().to_owned();
    let other_name = both.replace("d/a", "./d/../d/a");
    place.write("list", [both.as_str(), &other_name, &both].concat());
    assert_eq!(sum(&place, &["-c", "list"]).code(0).lines().len(), 3);
}

#[test]
fn hash_function_of_a_list_is_detected() {
    let place = place();
    let files = ["d/gone", "d/b/c", "d/b/e", "d/a"];
    let hashes = [
        "blake3", "sha256", "sha512", "sha3-256", "sha3-512", "md5", "xxh3-128", "sha1", "xxh64",
        "crc32",
    ];
    for hash in hashes {
        place.write("d/gone", "gone");
        for form in [&[][..], &["--tag"]] {
            let list = sum(&place, &[&["--hash", hash], form, &files[..]].concat()).code(0);
            place.write("list", list.stdout());
            let checked = sum(&place, &["-c", "list"]).code(0);
            assert_eq!(checked.lines().len(), 4, "{hash} {form:?}");
            assert_eq!(checked.text().matches(": OK").count(), 4, "{hash} {form:?}");
        }
        let plain = sum(&place, &["--hash", hash, "d/gone", "d/b/c"]).code(0);
        place.write("list", plain.stdout());
        // The list does not name its function. `d/gone`, its first file, cannot show the function
        // once it is missing or changed, but `d/b/c` can.
        std::fs::remove_file(place.path("d/gone")).unwrap();
        let checked = sum(&place, &["-c", "list", "--ignore-missing"]).code(0);
        assert_eq!(checked.lines(), ["d/b/c: OK"], "{hash}");
        place.write("d/gone", "changed");
        let checked = sum(&place, &["-c", "list"]).code(1);
        assert_eq!(checked.lines(), ["d/gone: FAILED", "d/b/c: OK"], "{hash}");
    }
    for (program, arguments) in [
        ("sha256sum", &[][..]),
        ("sha512sum", &[]),
        ("md5sum", &[]),
        ("sha1sum", &[]),
        ("b3sum", &[]),
        ("xxhsum", &[]),
        ("xxhsum", &["-H2"]),
        ("openssl", &["dgst", "-sha256"]),
        ("openssl", &["dgst", "-r", "-sha1"]),
        ("sha1sum", &["--tag"]),
        ("sha256sum", &["--tag"]),
        ("sha512sum", &["--tag"]),
        ("md5sum", &["--tag"]),
        ("xxhsum", &["-H2", "--tag"]),
    ] {
        let arguments = [arguments, &["d/a", "d/b/c", "d/b/e"]].concat();
        let Some(list) = other(&place, program, &arguments) else { continue };
        place.write("list", list.stdout);
        let checked = sum(&place, &["-c", "list"]).code(0);
        assert_eq!(checked.lines(), ["d/a: OK", "d/b/c: OK", "d/b/e: OK"], "{program}");
    }
}

#[test]
fn sfv_hashdeep_and_bsd_lists_are_verified() {
    let place = place();
    place.write("d/a b,c", "abc");
    let digests = |hash| {
        let list = sum(&place, &["--hash", hash, "d/b/c", "d/a b,c"]).code(0);
        let digest = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        list.lines().iter().map(|line| digest(&(*line).to_owned())).collect::<Vec<_>>()
    };
    let (crc, md5, sha1) = (digests("crc32"), digests("md5"), digests("sha1"));
    assert_eq!(crc[1], "352441c2", "CRC-32 of abc");
    let lists = [
        (
            "cksfv",
            format!("; by cksfv\r\nd/b/c {}\r\nd/a b,c {}\r\n", crc[0].to_uppercase(), crc[1]),
        ),
        (
            "hashdeep",
            format!(
                "%%%% HASHDEEP-1.0\n%%%% size,md5,sha1,filename\n## Invoked from: /\n## \n\
                 5000,{},{},d/b/c\n3,{},{},d/a b,c\n",
                md5[0], sha1[0], md5[1], sha1[1]
            ),
        ),
        ("md5 -r of BSD", format!("{} d/b/c\n{} d/a b,c\n", md5[0], md5[1])),
        ("sha1 of BSD", format!("SHA1 (d/b/c) = {}\nSHA1 (d/a b,c) = {}\n", sha1[0], sha1[1])),
    ];
    for (tool, list) in lists {
        place.write("list", &list);
        let checked = sum(&place, &["-c", "list", "--strict"]).code(0);
        assert_eq!(checked.lines(), ["d/b/c: OK", "d/a b,c: OK"], "{tool}");
        place.write(
            "list",
            list.replace(&sha1[1], &sha1[0]).replace(&crc[1], "00000000").replace(&md5[1], &md5[0]),
        );
        let checked = sum(&place, &["-c", "list"]).code(1);
        assert_eq!(checked.lines(), ["d/b/c: OK", "d/a b,c: FAILED"], "{tool}");
    }
}

#[test]
fn sparse_files_have_the_digests_of_their_bytes() {
    let place = place();
    let file = std::fs::File::create(place.path("sparse")).unwrap();
    file.set_len((50 << 20) + 3).unwrap();
    file.write_all_at(&noise(1, 5000), 20 << 20).unwrap();
    for (hash, program) in [("sha256", "sha256sum"), ("blake3", "b3sum"), ("md5", "md5sum")] {
        let Some(theirs) = other(&place, program, &["sparse"]) else { continue };
        assert_eq!(sum(&place, &["--hash", hash, "sparse"]).code(0).stdout(), theirs.stdout);
    }
}

#[test]
fn list_without_a_match_names_the_hash_functions_tried() {
    let place = place();
    let list = sum(&place, &["--hash", "sha256", "d/b/c", "d/b/e"]).code(0).text().to_owned();
    let wrong: String =
        list.lines().map(|line| format!("{}\n", line.replacen(&line[..4], "dead", 1))).collect();
    place.write("list", &wrong);
    let ended = sum(&place, &["-c", "list"]).code(1);
    assert_eq!(ended.lines(), ["d/b/c: FAILED", "d/b/e: FAILED"]);
    ended.stderr_contains(&["no file matches with blake3, sha256, sha3-256", "--hash"]);
    // If the name of the list or --hash names the function, no other function is tried.
    place.write("SHA256SUMS", &wrong);
    let named = sum(&place, &["-c", "SHA256SUMS"]).code(1);
    assert!(!named.stderr().contains("no file matches"), "{}", named.stderr());
    place.write("list", &list);
    sum(&place, &["--hash", "blake3", "-c", "list"]).code(1).stderr_contains(&["2 files changed"]);
}

#[test]
fn malformed_lines_are_reported_and_empty_lists_refused() {
    let place = place();
    let good = sum(&place, &["d/a"]).code(0).text().to_owned();
    place.write("list", format!("# a comment\nnonsense\n{good}"));
    sum(&place, &["-c", "list"]).code(0).stderr_contains(&["1 malformed line"]);
    sum(&place, &["-c", "list", "--strict"]).code(1).stderr_contains(&["1 malformed line"]);
    place.write("list", "nonsense\n");
    sum(&place, &["-c", "list"]).code(1).stderr_contains(&["no valid line in list", "--hash"]);
    sum(&place, &["-c", "none"]).code(3).stderr_contains(&["cannot read the list none"]);
    place.write("list", good.replace("d/a", "d/b"));
    assert_eq!(sum(&place, &["-c", "list"]).code(1).text(), "d/b: FAILED open or read\n");
}

#[test]
fn list_of_stdin_is_verified_from_stdin() {
    let place = TestDir::new();
    for arguments in [&["--hash", "sha256"][..], &["--tag"], &["--zero"], &["--hash", "crc32"]] {
        let list = place.run_with(&[&["sum"], arguments, &["-"]].concat(), b"content").code(0);
        place.write("list", list.stdout());
        let check = ["sum", "--check", "list"];
        assert_eq!(place.run_with(&check, b"content").code(0).text(), "-: OK\n", "{arguments:?}");
        assert_eq!(place.run_with(&check, b"other").code(1).text(), "-: FAILED\n", "{arguments:?}");
        let itself = place.run_with(&["sum", "--check", "-"], list.stdout()).code(1);
        itself.stderr_contains(&["the list itself was read from"]);
    }
}

#[test]
fn unreadable_files_are_reported_and_the_others_hashed() {
    let place = place();
    let ended = sum(&place, &["none", "d/a", "d/b"]).code(3);
    assert_eq!(ended.lines().len(), 3);
    ended.stderr_contains(&["none", "No such file"]);
    Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    sum(&place, &["pipe"]).code(1).stderr_contains(&["pipe: not a file"]);
}

#[test]
fn paths_are_read_from_a_list_and_json_supports_any_name() {
    let place = place();
    place.write(OsStr::from_bytes(b"d/\xff\n"), "abc");
    let listed = place.run_with(&["sum", "--files-from", "-", "-0", "--json"], b"d/a\0d/\xff\n\0");
    let lines = listed.code(0);
    let json: Vec<serde_json::Value> =
        lines.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json[0]["path"], "d/a");
    assert_eq!((json[0]["bytes"].as_u64(), json[0]["hash"].as_str()), (Some(0), Some("blake3")));
    assert_eq!(json[1]["path_hex"], "642fff0a");
    assert!(json[1]["sum"].as_str().is_some_and(|sum| sum.starts_with("6437b3ac")));
    let text = place.run_with(&["sum", "--files-from", "-"], b"d/a\n\nd/z\n").code(0);
    assert_eq!(text.lines().len(), 2);
}

#[test]
fn reading_options_do_not_change_the_result() {
    let place = place();
    let plain = sum(&place, &["d"]).code(0).text().to_owned();
    assert_eq!(sum(&place, &["d", "--spare-cache"]).code(0).text(), plain);
    assert_eq!(sum(&place, &["d", "--threads", "7"]).code(0).text(), plain);
    let ended = sum(&place, &["d", "-v"]).code(0);
    assert_eq!(ended.text(), plain);
    ended.stderr_contains(&["thread", "not cached before"]);
}

#[test]
fn sha3_digests_equal_those_of_openssl() {
    let place = place();
    for (hash, tag) in [("sha3-256", "SHA3-256"), ("sha3-512", "SHA3-512")] {
        let algorithm = format!("-{hash}");
        let files = ["d/a", "d/b/c", "d/z"];
        let arguments = [&["dgst", "-r", &algorithm], &files[..]].concat();
        let Some(theirs) = other(&place, "openssl", &arguments) else { return };
        place.write("list", &theirs.stdout);
        let checked = sum(&place, &["--hash", hash, "-c", "list"]).code(0);
        assert_eq!(checked.lines(), ["d/a: OK", "d/b/c: OK", "d/z: OK"]);
        let tagged = sum(&place, &["--hash", hash, "--tag", "d"]).code(0);
        assert!(tagged.text().starts_with(&format!("{tag} (d/a) = ")), "{}", tagged.text());
        place.write("tagged", tagged.stdout());
        assert_eq!(sum(&place, &["-c", "tagged"]).code(0).lines().len(), 4);
    }
}

#[test]
fn disk_kind_option_overrides_detection() {
    let place = place();
    for (kind, expected) in
        [("solid", "solid-state (configured)"), ("rotating", "rotational (configured)")]
    {
        let list =
            sum(&place, &["d", "-v", "--disk-kind", kind]).code(0).stderr_contains(&[expected]);
        assert_eq!(list.lines().len(), 4);
        place.write("list", list.stdout());
        sum(&place, &["-c", "list", "-v", "--disk-kind", kind])
            .code(0)
            .stderr_contains(&[expected]);
    }
    sum(&place, &["d", "--disk-kind", "tape"]).code(2);
}

#[test]
fn digest_cache_is_shared_with_dups() {
    let place = TestDir::new();
    for name in ["d/a", "d/b"] {
        place.write(name, noise(7, 70_000));
    }
    // The digest of a file is cached only if its last change is some time ago and on the disk.
    let changed = |name: &str| place.path(name).metadata().unwrap().modified().unwrap();
    let until = changed("d/b") + std::time::Duration::from_millis(150);
    while std::time::SystemTime::now() < until {
        std::thread::yield_now();
    }
    for name in ["d/a", "d/b"] {
        std::fs::File::open(place.path(name)).unwrap().sync_all().unwrap();
    }
    place.run(&["dups", "--cache=cache", "--hash-fn", "blake3", "d"]).code(0);
    if !place.path("cache").exists() {
        return skip("the file system grants no leases, or is in memory");
    }
    let plain = sum(&place, &["d"]).code(0);
    place.run(&["cache", "evict", "d"]).code(0);
    let cached = sum(&place, &["--cache=cache", "d"]).code(0);
    assert_eq!(cached.lines(), plain.lines());
    let file = std::fs::File::open(place.path("d/a")).unwrap();
    use std::os::fd::AsFd;
    let resident = haul_disk::resident(&file.as_fd(), 0, u64::MAX).unwrap();
    assert_eq!(resident.resident_bytes, 0, "the file was read");
    // A file of another hash function is neither used nor replaced.
    let before = std::fs::read(place.path("cache")).unwrap();
    let other = sum(&place, &["--hash", "sha256", "--cache=cache", "d"]).code(1);
    assert_eq!(std::fs::read(place.path("cache")).unwrap(), before);
    other.stderr_contains(&["another hash function"]);
    sum(&place, &["--check", "x", "--cache"]).code(2);
}
