//! Executes the examples of the tour that show output, and compares the form of the output.

use std::path::Path;

use haul_testing::noise;

use super::block::Block;
use super::{section, shell};

const PAGE: &str = "docs/tour.md";

/// The sections with examples.
pub(super) const SECTIONS: [&str; 4] = [
    "Inspect the page cache",
    "Probe and tune the machine",
    "Checksum a directory",
    "Relay connections",
];

/// Returns the only example of a section.
fn example(heading: &str) -> Block {
    let mut examples = section(PAGE, heading);
    examples.retain(|block| block.language == "console");
    assert_eq!(examples.len(), 1, "{heading}");
    examples.remove(0)
}

/// Returns the commands of an example, each with its output.
fn commands(block: &Block) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in &block.lines {
        match line.strip_prefix("$ ") {
            Some(command) => all.push((command, Vec::new())),
            None => all.last_mut().expect("an example begins with a command").1.push(line),
        }
    }
    all
}

/// Runs a command, asserts its exit code, and returns its output and errors.
fn run(dir: &Path, command: &str, code: i32) -> String {
    let output = shell::run(dir, &format!("exec 2>&1; trap - ERR\n{command}"));
    assert_eq!(output.status.code(), Some(code), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the form of a line: without bars and spaces, with `#` for each number and `B` for each
/// unit of bytes.
fn form(line: &str) -> String {
    let text = line.rsplit('▏').next().unwrap_or(line);
    let word = |word: &str| {
        let number = |c: char| c.is_ascii_digit() || ".,".contains(c);
        match word.trim_start_matches('(') {
            "KiB" | "MiB" | "GiB" => "B".to_owned(),
            rest if rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains(':') => {
                word.replace(rest.trim_end_matches(|c| !number(c)), "#")
            }
            _ => word.to_owned(),
        }
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn forms<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines.into_iter().map(form).collect()
}

#[test]
fn cache_of_the_example_is_shown_as_in_the_tour() {
    let example = example(SECTIONS[0]);
    let dir = haul_testing::disk_dir();
    std::fs::create_dir(dir.path().join("notes")).unwrap();
    std::fs::write(dir.path().join("video.mkv"), noise(0, 40_000_000)).unwrap();
    for number in 1..=12 {
        let note = dir.path().join(format!("notes/{number}.txt"));
        std::fs::write(note, noise(number, 10_000 * usize::try_from(number).unwrap())).unwrap();
    }
    let prepare = "haul cache evict --sync . && (tail --bytes 10M video.mkv; cat notes/*) | wc";
    run(dir.path(), prepare, 0);
    for (command, lines) in commands(&example) {
        let printed = run(dir.path(), command, 0);
        assert_eq!(forms(printed.lines()), forms(lines), "{command}");
    }
}

#[test]
fn probe_prints_the_properties_of_the_tour() {
    let example = example(SECTIONS[1]);
    let [(command, lines)] = commands(&example).try_into().unwrap();
    let printed = run(Path::new(env!("CARGO_TARGET_TMPDIR")), command, 0);
    let label = |line: &str| line.get(..16).map(|label| label.trim().to_owned());
    let printed: Vec<_> = printed.lines().map(label).collect();
    let labels = lines.iter().take_while(|line| **line != "...").map(|line| label(line));
    for label in labels.filter(|label| label.is_some()) {
        assert!(printed.contains(&label), "{label:?} of the tour is not in {printed:?}");
    }
}

#[test]
fn changed_file_is_reported_as_in_the_tour() {
    let example = example(SECTIONS[2]);
    let dir = tempfile::tempdir().unwrap();
    let pictures = dir.path().join("pictures");
    std::fs::create_dir(&pictures).unwrap();
    std::fs::write(pictures.join("greeting.txt"), "hello, disk\n").unwrap();
    std::fs::write(pictures.join("note.txt"), "a durable note\n").unwrap();
    let [(first, sums), (second, report)] = commands(&example).try_into().unwrap();
    assert_eq!(run(dir.path(), first, 0).lines().collect::<Vec<_>>(), sums);
    std::fs::write(pictures.join("greeting.txt"), "hello, tape\n").unwrap();
    std::fs::write(pictures.join("new.txt"), "new").unwrap();
    // Without a terminal, the errors may precede the output.
    let sorted = |mut lines: Vec<_>| {
        lines.sort_unstable();
        lines.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let printed = run(dir.path(), second, 1);
    assert_eq!(sorted(printed.lines().collect()), sorted(report));
}

#[test]
fn relay_prints_the_summary_of_the_tour() {
    let example = example(SECTIONS[3]);
    let [(command, lines)] = commands(&example).try_into().unwrap();
    let dir = haul_testing::disk_dir();
    std::fs::write(dir.path().join("film"), noise(0, 30_000_000)).unwrap();
    // Two connections: the first one for a small file.
    let session = format!(
        "exec 2> /dev/null
        haul files . --listen 127.0.0.1:18081 > ready &
        until curl -sf http://127.0.0.1:18081/ready; do sleep 0.1; done > /dev/null
        {command} &
        until [ -n \"$(curl -s http://127.0.0.1:18082/ready)\" ]; do sleep 0.1; done
        curl -s http://127.0.0.1:18082/film > copy
        kill %2 && wait %2"
    );
    let printed = run(dir.path(), &session, 0);
    assert_eq!(forms(printed.lines()), forms(lines));
}

#[test]
fn forms_of_lines_have_no_figures_and_bars() {
    let line = "▕··▓██▏  37.1 %    14.1 MiB of  120 KiB  ./a.mkv (37.2 %, 3,707 of 9 pages), 2 s";
    assert_eq!(form(line), "# % # B of # B ./a.mkv (# %, # of # pages), # s");
    assert_eq!(form("  127.0.0.1:1 is up: 2 connections,"), "127.0.0.1:1 is up: # connections,");
    assert_eq!(form("copied 166 B in 2 bursts"), "copied # B in # bursts");
}
