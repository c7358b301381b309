//! Compares the options of `fclones remove`, `link`, `dedupe` and `move` with those of `haul dups`.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{next_tick, output, program, verify, words};
use crate::helper::TestDir;

/// The options of the search, a colon, and the action with its options.
const CASES: &[&str] = &[
    "t : remove --priority top",
    "t : remove --priority bottom",
    "t : remove --priority newest",
    "t : remove --priority oldest",
    "t : remove --priority most-recently-modified",
    "t : remove --priority least-recently-modified",
    "t : remove --priority most-recently-accessed",
    "t : remove --priority least-recently-accessed",
    "t : remove --priority most-recent-status-change",
    "t : remove --priority least-recent-status-change",
    "t : remove --priority most-nested",
    "t : remove --priority least-nested",
    "DIFFERS t : remove --priority top -n 2",
    "DIFFERS t : remove --priority top --rf-over 3",
    "-n 2 t : remove --priority top",
    "t : remove --priority top --keep-name 1",
    "t : remove --priority top --keep-path '**/a/*'",
    "t : remove --priority top --name 2",
    "t : remove --priority top --path '**/b/*'",
    "t : remove --priority top --name 2 --keep-path '**/a/*'",
    "-I t/a t/b : remove --priority top",
    "-I t/a t/b : remove --priority bottom",
    "DIFFERS t : remove --priority top --isolate t/a --isolate t/b",
    "-H t : remove --priority top",
    "-H t : remove --priority top -H",
    "t : remove --priority top --match-links",
    "DIFFERS t : remove --priority top --modified-before '2001-01-01 00:00:00'",
    "t : remove --priority top -m '2035-01-01 00:00:00'",
    "t : remove --priority top --no-lock",
    "t : remove --priority top --no-check-size",
    "t : remove --priority top --dry-run",
    "t : remove --priority top --dry-run -o script",
    "t : link --priority top",
    "DIFFERS t : link --priority bottom -n 2",
    "t : link --soft --priority top",
    "t : link -s --priority bottom",
    "t : dedupe --priority top --dry-run",
    "t : move --priority top target",
    "t : move --priority bottom --dry-run target",
];

/// Creates three copies and a hard link, whose creation, modification and access times have
/// different orders.
fn place() -> TestDir {
    let place = TestDir::on_disk();
    let now = SystemTime::now();
    // Access times in the future stay unchanged when the files are read (`relatime`).
    for (name, modified, accessed) in [("t/b/2", 300, 10), ("t/a/1", 100, 30), ("t/b/c/3", 200, 20)]
    {
        let path = place.write(name, "content");
        let times = FileTimes::new()
            .set_modified(now - Duration::from_secs(modified))
            .set_accessed(now + Duration::from_secs(3600 * accessed));
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        next_tick();
    }
    fs::hard_link(place.path("t/a/1"), place.path("t/a/link")).unwrap();
    next_tick();
    place
}

#[test]
fn actions_have_the_results_of_fclones() {
    verify(CASES, include_str!("actions.txt"), |case, is_fclones| {
        let place = place();
        let (search, action) = case.split_once(" : ").unwrap();
        let mut command = program(&place, is_fclones, "group")?;
        command.args(words(search));
        let report = output(&place, command, "").unwrap();
        let (name, options) = action.split_once(' ').unwrap();
        let mut command = program(&place, is_fclones, name)?;
        command.args(words(options));
        let exit = match output(&place, command, &report) {
            Ok(_) => String::new(),
            Err(code) => format!("\nexit code {code}"),
        };
        Some(format!("{}{exit}", state(&place)))
    });
}

/// Returns one line for each file: its name, and what it is a link to.
fn state(place: &TestDir) -> String {
    let mut files = Vec::new();
    below(&place.path(""), &mut files);
    files.retain(|file| !file.ends_with("script"));
    files.sort();
    let root = place.path("").display().to_string();
    // A moved file has its whole path below the target.
    let short = |path: &Path| path.display().to_string().replace(&root[1..], "").replace("//", "/");
    let line = |file: &std::path::PathBuf| {
        let status = fs::symlink_metadata(file).unwrap();
        if status.is_symlink() {
            return format!("{} -> {}", short(file), short(&fs::read_link(file).unwrap()));
        }
        let is_link = |other: &&std::path::PathBuf| {
            fs::symlink_metadata(other).is_ok_and(|other| other.ino() == status.ino())
        };
        match files.iter().find(is_link) {
            Some(first) if first != file => format!("{} = {}", short(file), short(first)),
            _ => short(file),
        }
    };
    files.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn below(dir: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            below(&path, files);
        } else {
            files.push(path);
        }
    }
}
