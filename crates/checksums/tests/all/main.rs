//! Tests hashing, verification and detection of hash functions on real files.

mod cached;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Error, ReadOptions, ReadStats, Tree, WalkEvents, WalkOptions, walk};
use haul_checksums::{
    Check, CheckEvents, Job, Line, LineFormat, List, Outcome, StreamDigests, Verdict, detect, hash,
    write_line,
};
use haul_testing::{Random, write_deep_file};

fn as_path(name: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name))
}

struct Ignore;

impl WalkEvents for Ignore {
    fn failed(&self, _error: Error) {}
}

impl CheckEvents for Ignore {
    fn begin_round(&self, _tree: &Tree) {}
    fn progress(&self, _files: u64, _bytes: u64) {}
    fn end_round(&self, _stats: &ReadStats) {}
    fn failed(&self, _error: &Error) {}
}

/// Returns the line of a list that has the name `path` and the digest of `content`.
fn line(kind: HashKind, path: &Path, content: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let format = LineFormat { tag: false, zero: false };
    write_line(&mut line, kind, &kind.of(content), path.as_os_str().as_bytes(), format);
    line
}

fn verdicts(lines: Vec<Line>) -> Vec<Verdict> {
    let check = Check::run(lines, None, &ReadOptions::default(), &Ignore);
    check.results().map(|(_, verdict)| verdict).collect()
}

#[test]
fn each_line_has_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("same"), "a").unwrap();
    fs::write(file("changed"), "b").unwrap();
    fs::create_dir(file("directory")).unwrap();
    fs::hard_link(file("same"), file("link")).unwrap();
    let names = ["same", "changed", "missing", "directory", "link", "same"];
    let text: Vec<_> =
        names.iter().flat_map(|name| line(HashKind::Sha256, &file(name), b"a")).collect();
    let list = List::parse(&text, Some(HashKind::Sha256));
    let expected = [
        Verdict::Same,
        Verdict::Changed,
        Verdict::Missing,
        Verdict::Unread,
        Verdict::Same,
        Verdict::Same,
    ];
    assert_eq!(verdicts(list.lines), expected);
}

#[test]
fn file_listed_under_two_spellings_is_verified_for_both() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "a").unwrap();
    let (one, other) = (dir.path().join("f"), dir.path().join("./f"));
    let text = [line(HashKind::Md5, &one, b"a"), line(HashKind::Md5, &other, b"b")].concat();
    let list = List::parse(&text, Some(HashKind::Md5));
    assert_eq!(verdicts(list.lines), [Verdict::Same, Verdict::Changed]);
}

#[test]
fn hash_function_of_a_list_is_found_by_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "content").unwrap();
    for kind in HashKind::ALL {
        let mut lines = List::parse(&line(kind, &path, b"content"), None).lines;
        assert!(detect(&mut lines, Path::new("list"), None).is_empty());
        assert_eq!(lines[0].kind, Some(kind));
    }
    let mut lines = List::parse(&line(HashKind::Sha256, &path, b"other"), None).lines;
    let tried = [HashKind::Blake3, HashKind::Sha256, HashKind::Sha3_256];
    assert_eq!(detect(&mut lines, Path::new("list"), None), tried);
}

#[test]
fn unlisted_files_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (listed, other) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&listed, "a").unwrap();
    fs::write(&other, "b").unwrap();
    let list = List::parse(&line(HashKind::Md5, &listed, b"a"), Some(HashKind::Md5));
    let check = Check::run(list.lines, None, &ReadOptions::default(), &Ignore);
    let tree = walk(&[dir.path().to_owned()], &WalkOptions::default(), &Ignore);
    assert_eq!(check.unlisted(&tree, None), [other]);
}

#[test]
fn digests_are_reported_in_the_order_of_the_jobs_until_the_first_error() {
    let dir = tempfile::tempdir().unwrap();
    let content = |number: usize| vec![7; number * (3 << 20)];
    let names: Vec<PathBuf> = (0..5).map(|number| dir.path().join(number.to_string())).collect();
    for (number, name) in names.iter().enumerate() {
        fs::write(name, content(number)).unwrap();
    }
    let options = WalkOptions { sort: true, ..WalkOptions::default() };
    let tree = walk(&names, &options, &Ignore);
    let kind = HashKind::Blake3;
    let jobs: Vec<_> = tree.ids().map(|file| Job { file, kind }).collect();
    for limit in [2, 9] {
        let mut sums = Vec::new();
        let report = |index: usize, outcome: Outcome| {
            sums.push(outcome.unwrap());
            if index == limit { Err("stopped") } else { Ok(()) }
        };
        let result = hash(&tree, &jobs, &ReadOptions::default(), &|_, _| {}, report);
        assert_eq!(result.is_err(), limit < jobs.len());
        let expected: Vec<_> =
            (0..jobs.len().min(limit + 1)).map(|number| kind.of(&content(number))).collect();
        assert!(sums == expected, "{limit}");
    }
}

/// Returns a name of random bytes that a file system permits.
fn any_name(random: &mut Random) -> Vec<u8> {
    const SPECIAL: &[u8] = b" \t\r\n\\*#;()=%-.,a";
    let length = 1 + random.below(12);
    let byte = |random: &mut Random| match random.below(2) {
        0 => SPECIAL[usize::from(random.bytes(1)[0]) % SPECIAL.len()],
        _ => random.bytes(1)[0].max(1),
    };
    let bytes = (0..length).map(|_| byte(random)).filter(|byte| *byte != b'/');
    let name: Vec<u8> = bytes.collect();
    if matches!(&name[..], b"" | b"." | b"..") { b"x".to_vec() } else { name }
}

#[test]
fn each_written_list_is_verified_whatever_the_names_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::from_environment();
    let mut paths: Vec<PathBuf> = (0..60)
        .map(|_| dir.path().join(as_path(&any_name(&mut random))))
        .filter(|path| fs::write(path, path.as_os_str().as_bytes()).is_ok())
        .collect();
    paths.sort();
    paths.dedup();
    for kind in [HashKind::Blake3, HashKind::Sha256, HashKind::Md5, HashKind::Crc32] {
        for (tag, zero) in [(false, false), (true, false), (false, true), (true, true)] {
            let lines: Vec<Vec<u8>> = paths
                .iter()
                .map(|path| {
                    let (name, mut line) = (path.as_os_str().as_bytes(), Vec::new());
                    write_line(&mut line, kind, &kind.of(name), name, LineFormat { tag, zero });
                    line
                })
                .collect();
            // All lines, and each alone, without the help of the others.
            for text in lines.iter().cloned().chain([lines.concat()]) {
                let list = List::parse(&text, Some(kind).filter(|_| !tag));
                assert_eq!((list.malformed, &list.unknown[..]), (0, &[][..]), "{text:?}");
                let found = verdicts(list.lines);
                assert!(found.iter().all(|it| *it == Verdict::Same), "{kind:?} {text:?}");
            }
        }
    }
}

#[test]
fn names_that_a_row_may_mean_are_tried() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    for name in ["Icon\r", "blank ", "plain"] {
        fs::write(file(name), "x").unwrap();
    }
    let prefix = dir.path().display();
    let crc = HashKind::Crc32.of(b"x");
    let md5 = HashKind::Md5.of(b"x");
    for text in [
        format!("{prefix}/blank  {crc}\n{prefix}/plain    {crc}\n"),
        format!("{md5}  {prefix}/Icon\r\n"),
        format!("{md5}  {prefix}/Icon\r\n{md5}  {prefix}/plain\n"),
        format!("{md5}  {prefix}/plain\r\n{md5}  {prefix}/blank \r\n"),
        format!("{md5} {prefix}/plain\n{md5}  {prefix}/plain\n"),
    ] {
        let mut lines = List::parse(text.as_bytes(), None).lines;
        detect(&mut lines, Path::new("list"), None);
        let found = verdicts(lines);
        assert!(found.iter().all(|it| *it == Verdict::Same), "{text:?}: {found:?}");
    }
    // A file that changed or is missing is not hidden by another name.
    let text = format!("{md5}  {prefix}/gone\r\n{md5}  {prefix}/plain\n");
    let found = verdicts(List::parse(text.as_bytes(), Some(HashKind::Md5)).lines);
    assert_eq!(found, [Verdict::Missing, Verdict::Same]);
}

#[test]
fn file_at_a_path_beyond_the_limit_of_the_kernel_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_deep_file(dir.path(), b"content");
    for kind in HashKind::ALL {
        let mut lines = List::parse(&line(kind, &path, b"content"), None).lines;
        assert_eq!(detect(&mut lines, Path::new("list"), None), [], "{kind:?}");
        assert_eq!(verdicts(lines), [Verdict::Same], "{kind:?}");
    }
    let missing = line(HashKind::Sha256, &path.with_file_name("g"), b"content");
    assert_eq!(verdicts(List::parse(&missing, Some(HashKind::Sha256)).lines), [Verdict::Missing]);
}

#[test]
fn line_for_stdin_is_verified_by_its_digests() {
    let dir = tempfile::tempdir().unwrap();
    for kind in HashKind::ALL {
        for (tag, zero) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut text = Vec::new();
            let format = LineFormat { tag, zero };
            write_line(&mut text, kind, &kind.of(b"content"), b"-", format);
            let check = |content: &[u8]| {
                let mut lines = List::parse(&text, None).lines;
                let stdin = StreamDigests::read_for(&lines, content).unwrap();
                detect(&mut lines, Path::new("list"), stdin.as_ref());
                let check = Check::run(lines, stdin.as_ref(), &ReadOptions::default(), &Ignore);
                check.results().map(|(_, verdict)| verdict).collect::<Vec<_>>()
            };
            assert_eq!(check(b"content"), [Verdict::Same], "{kind:?} {format:?}");
            assert_eq!(check(b"other"), [Verdict::Changed], "{kind:?} {format:?}");
        }
    }
    let stdin_line = line(HashKind::Md5, Path::new("-"), b"content");
    let lines = List::parse(&stdin_line, Some(HashKind::Md5)).lines;
    assert_eq!(verdicts(lines.clone()), [Verdict::Unread], "without stdin");
    // A file of that name is another one.
    let file = line(HashKind::Md5, &dir.path().join("-"), b"content");
    let lines = List::parse(&file, Some(HashKind::Md5)).lines;
    assert_eq!(StreamDigests::read_for(&lines, &b"content"[..]).unwrap(), None);
    assert_eq!(verdicts(lines), [Verdict::Missing]);
}
