//! Tests compression, and `haul log show`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use haul_testing::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::helper::{Finished, TestDir, noise};

/// Returns the names of the files of the log in `dir` that end with `end`.
fn names(dir: &Path, end: &str) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(end)).collect()
}

#[test]
fn closed_files_are_compressed_before_the_end() {
    let place = TestDir::new();
    let lines: Vec<u8> = (0..40_000).flat_map(|n| format!("line {n:06}\n").into_bytes()).collect();
    let arguments = ["log", "logs", "--max-size", "50000", "--compress", "zstd:1", "--keep", "all"];
    let ended = place.run_with(&arguments, &lines).code(0);
    assert_eq!(ended.stderr(), "");
    let dir = place.path("logs");
    assert_eq!(names(&dir, "Z.log.zst").len(), lines.len() / 50_000);
    assert!(names(&dir, ".log").is_empty() && names(&dir, ".tmp").is_empty());
    assert!(place.run(&["log", "show", "logs"]).code(0).stdout() == lines);
}

#[test]
fn sigterm_ends_the_wait_for_compression_and_the_next_run_continues_it() {
    let place = TestDir::new();
    let dir = place.path("logs");
    let mut expected = Vec::new();
    for number in 10..30 {
        // Hexadecimal digits take long to compress.
        let lines: Vec<u8> = noise(number, 500_000)
            .iter()
            .flat_map(|byte| format!("{byte:02x}").into_bytes())
            .collect();
        place.write(format!("logs/20261121T0723{number}.000000Z.log"), &lines);
        expected.extend(lines);
    }
    let arguments = ["log", "logs", "--compress", "zstd:19", "--keep", "all"];
    let mut command = place.command(&arguments);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a file is compressed", || !names(&dir, ".zst").is_empty());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!names(&dir, ".log").is_empty(), "the signal did not end the wait");
    assert!(place.run(&["log", "show", "logs"]).code(0).stdout() == expected);
    place.run(&["log", "logs", "--compress", "zstd:1", "--keep", "all"]).code(0);
    assert_eq!((names(&dir, ".log").len(), names(&dir, ".zst").len()), (0, 20));
    assert!(place.run(&["log", "show", "logs"]).code(0).stdout() == expected);
}

#[test]
fn lines_of_a_time_are_shown() {
    let place = TestDir::new();
    let line = |hour: u32, text: &str| format!("2026-11-21T{hour:02}:00:00.000000Z {text}\n");
    let old = line(6, "six") + &line(7, "seven") + "more of seven\n";
    let new = line(8, "eight") + &line(9, "nine");
    let text = old.clone() + &new;
    place.write("logs/20261121T073000.000000Z.log", &old);
    let current = place.write("logs/current", &new);
    let show = |arguments: &[&str], code: i32| {
        let arguments = [&["log", "show", "logs"], arguments].concat();
        let mut command = place.command(&arguments);
        Finished(command.env("TZ", "<+01>-1").output().unwrap()).code(code)
    };
    let from = |text: &str, part: &str| text[text.find(part).unwrap()..].to_owned();
    assert_eq!(show(&[], 0).text(), text);
    for (since, first) in [
        ("2026-11-21T07:00:00Z", "2026-11-21T07"),
        ("2026-11-21 09:00", "2026-11-21T08"),
        ("2026-11-21T07:30:00-01:30", "2026-11-21T09"),
        ("2026-11-21", "2026-11-21T06"),
    ] {
        let shown = show(&["--since", since], 0);
        assert_eq!((shown.text(), shown.stderr().as_str()), (from(&text, first).as_str(), ""));
        let shown = show(&["--until", since], 0);
        assert_eq!(shown.text().to_owned() + &from(&text, first), text, "{since}");
    }
    assert_eq!(show(&["--since", "-1m", "--until", "now"], 0).text(), "");
    let messages = show(&["--since", "soon"], 2).stderr();
    assert!(messages.contains("\"soon\" is not a time; write it like"), "{messages}");

    // Without timestamps, the times of the files count.
    fs::write(&current, "no timestamp\n").unwrap();
    let shown = show(&["--since", "1m"], 0);
    let message = "haul: printed 1 file whole: the lines have no timestamps\n";
    assert_eq!((shown.text(), shown.stderr()), ("no timestamp\n", message.to_owned()));

    place.write("logs/20261121T074000.000000Z.log.zst", "damaged");
    let shown = show(&[], 1);
    assert_eq!(shown.text(), old + "no timestamp\n", "the other files are printed");
    assert!(shown.stderr().contains("some lines are missing: cannot read"), "{}", shown.stderr());
    place.run(&["log", "show", "missing"]).code(3).stderr_contains(&["cannot read the log"]);
    place.run(&["log", "show", "."]).code(3).stderr_contains(&["contains no file of a log"]);
}

#[test]
fn lines_are_shown_as_json_objects() {
    let place = TestDir::new();
    let long = "x".repeat(600_000);
    place.write("logs/20261121T073000.000000Z.log", "1795245794.500000 a \"b\"\nmore of a\n\ntorn");
    place.write("logs/current", format!("@400000006b0146ec1dcd6500 \u{e4}\n{long}\n"));
    let (old, new) = ("20261121T073000.000000Z.log", "current");
    let expected = [
        (Some("2026-11-21T07:23:14.500000Z"), "a \"b\"", old),
        (None, "more of a", old),
        (None, "", old),
        (None, "torn", old),
        (Some("2026-11-21T07:23:14.500000Z"), "\u{e4}", new),
        (None, &long, new),
    ];
    let shown = place.run(&["log", "show", "logs", "--json"]).code(0);
    let lines = shown.text().lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let object = |(time, text, file): (Option<&str>, &str, &str)| serde_json::json!({ "time": time, "text": text, "file": file });
    assert_eq!(lines, expected.map(object));

    place.write("logs/current", b"1795245795.500000 not UTF-8: \xff\n");
    let since = ["log", "show", "logs", "--json", "--since", "2026-11-21T07:23:15Z"];
    let line = "{\"file\":\"current\",\"text\":\"not UTF-8: \u{fffd}\",\
                \"time\":\"2026-11-21T07:23:15.500000Z\"}\n";
    assert_eq!(place.run(&since).code(0).text(), line);
}
