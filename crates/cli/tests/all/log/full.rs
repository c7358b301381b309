//! Tests `haul log` on a full disk.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

use haul_testing::LoopImage;
use rustix::process::{Pid, Signal, kill_process};

use super::all;
use crate::helper::TestDir;

#[test]
fn full_disk_blocks_the_service_and_sigterm_reports_lost_lines() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let place = TestDir::new();
    let dir = image.mount().join("logs");
    fs::write(image.mount().join("ballast"), vec![1; 20 << 20]).unwrap();
    let mut child = place
        .command(&[Path::new("log"), &dir, Path::new("--keep"), Path::new("all")])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<u8> = (0..40 << 13).flat_map(|n| format!("{n:0127}\n").into_bytes()).collect();
    let giving = std::thread::spawn(move || {
        // The write fails when the program exits without reading the rest.
        stdin.write_all(&lines).unwrap_err();
        lines
    });
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut stderr_text = String::new();
    stderr.read_line(&mut stderr_text).unwrap();
    assert!(
        stderr_text.contains("cannot write to the log, retrying")
            && stderr_text.contains("No space left"),
        "{stderr_text}"
    );
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    stderr.read_to_string(&mut stderr_text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{stderr_text}");
    assert!(stderr_text.contains("of the input: cannot write"), "{stderr_text}");
    let lines = giving.join().unwrap();
    let found = all(&dir);
    assert!(found.len() > 2 << 20 && lines.starts_with(&found), "{}", found.len());
}

#[test]
fn full_disk_with_dropped_lines_counts_lost_input() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    for timestamps in [false, true] {
        // About 1.6 MiB of the disk are free: 2.25 MiB with the blocks reserved for root, which the
        // program can use, without those that ext4 keeps for itself. That is less than the lines
        // that the memory can hold, so lines are lost on a disk of any speed.
        let place = TestDir::new();
        let dir = image.mount().join(format!("logs-{timestamps}"));
        let ballast = image.mount().join("ballast");
        fs::remove_file(&ballast).ok();
        let free = rustix::fs::statvfs(image.mount()).unwrap();
        let bytes = usize::try_from(free.f_bfree * free.f_frsize - (9 << 18)).unwrap();
        fs::write(&ballast, vec![1; bytes]).unwrap();
        let mut command = place.command(&[Path::new("log"), &dir]);
        command.args(["--keep", "all", "--when-full", "drop", "--memory", "2MiB"]);
        command.args(timestamps.then_some("--timestamps"));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let count = 12 << 13;
        let lines: Vec<u8> = (0..count).flat_map(|n| format!("{n:0127}\n").into_bytes()).collect();
        // The program reads all input, and exits at the end of the input without a signal.
        child.stdin.take().unwrap().write_all(&lines).unwrap();
        let ended = child.wait_with_output().unwrap();
        let stderr_text = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{stderr_text}");
        assert!(stderr_text.contains("of the input: cannot write"), "{stderr_text}");
        let number = |line: &str| -> usize {
            let digits = line.chars().skip_while(|char| !char.is_ascii_digit());
            let digits = digits.take_while(|char| char.is_ascii_digit() || *char == ',');
            digits.filter(|char| *char != ',').collect::<String>().parse().unwrap()
        };
        let counted: usize =
            stderr_text.lines().filter(|line| line.contains(" lines (")).map(number).sum();
        let found = all(&dir).iter().filter(|byte| **byte == b'\n').count();
        // The counts differ a little: the log adds a line wherever lines are missing, and a torn
        // line is lost, too.
        let missing = count - found;
        assert!(
            found > 1000 && missing.abs_diff(counted) <= 8,
            "{found} of {count}: {stderr_text}"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn full_disk_makes_room_by_removing_the_oldest_files() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let place = TestDir::new();
    let dir = image.mount().join("logs");
    let mut command = place.command(&[Path::new("log"), &dir]);
    command.args(["--keep", "all", "--max-size", "1MiB"]);
    command.args(["--when-full", "remove-oldest", "--keep-min", "2"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text)
    });
    let lines: Vec<u8> = (0..60 << 13).flat_map(|n| format!("{n:0127}\n").into_bytes()).collect();
    stdin.write_all(&lines).unwrap();
    drop(stdin);
    let stderr_text = reading.join().unwrap().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr_text}");
    let removed = stderr_text.matches("the disk is full: removed").count();
    assert!(removed >= 30 && stderr_text.contains("(1 MiB)"), "{stderr_text}");
    let found = all(&dir);
    assert_eq!(removed << 20, lines.len() - found.len(), "{stderr_text}");
    assert!(lines.ends_with(&found));
}
