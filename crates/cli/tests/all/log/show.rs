//! Tests compression, and `haul log show`.

use std::fs;

use crate::helper::{Finished, TestDir};

#[test]
fn closed_files_are_compressed_before_the_end() {
    let place = TestDir::new();
    let lines: Vec<u8> = (0..40_000).flat_map(|n| format!("line {n:06}\n").into_bytes()).collect();
    let arguments = ["log", "logs", "--max-size", "50000", "--compress", "zstd:1", "--keep", "all"];
    let ended = place.run_with(&arguments, &lines).code(0);
    assert_eq!(ended.stderr(), "");
    let names: Vec<String> = fs::read_dir(place.path("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "LOCK" && name != "current")
        .collect();
    assert_eq!(names.len(), lines.len() / 50_000, "{names:?}");
    assert!(names.iter().all(|name| name.ends_with("Z.log.zst")), "{names:?}");
    assert!(place.run(&["log", "show", "logs"]).code(0).stdout() == lines);
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
