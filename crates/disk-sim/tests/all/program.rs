//! Processes with a disk, and what is left when they end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use haul_test_image::run;

use crate::disk;

/// Long enough for a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Whether a loop device reads a disk of this process.
fn has_disk(process: u32) -> bool {
    let of_it = format!("/spinning-disk-{process}-");
    let devices = std::fs::read_dir("/sys/block").expect("there are devices");
    devices.flatten().any(|device| {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file"));
        file.is_ok_and(|file| file.starts_with(&of_it))
    })
}

fn is_mounted(dir: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there are mounts");
    mounts.contains(&format!(" {} ", dir.display()))
}

/// The program with a mounted ext4, once it says so.
fn started_on(dir: &Path) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_spinning-disk"))
        .args(["--memory", "--size", "64M", "--time-scale", "0", "--fs", "ext4", "--mount"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let out = BufReader::new(program.stdout.take().expect("it speaks"));
    let said: Vec<_> = out.lines().map_while(Result::ok).take(4).collect();
    assert!(said[0].starts_with("device /dev/loop") && said[1].starts_with("control /proc/"));
    // At time scale 0.
    assert_eq!(said[2], "transport 0 us");
    assert_eq!(said[3], format!("mount {}", dir.display()));
    program
}

#[test]
fn the_program_leaves_nothing_behind_however_it_ends() {
    if disk(64 << 20).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for signal in ["INT", "TERM", "KILL"] {
        let mut program = started_on(dir.path());
        assert!(is_mounted(dir.path()) && has_disk(program.id()));
        std::fs::write(dir.path().join("greeting"), "hello").unwrap();
        run(Command::new("kill").args(["-s", signal, &program.id().to_string()])).unwrap();
        let status = program.wait().unwrap();
        assert_eq!(status.success(), signal != "KILL");
        eventually("unmounted", || !is_mounted(dir.path()));
        eventually("detached", || !has_disk(program.id()));
    }
}

#[test]
fn a_process_killed_while_it_waits_for_its_own_disk_goes_away() {
    const ROLE: &str = "HAUL_WAITS_FOR_ITS_OWN_DISK";
    if std::env::var_os(ROLE).is_some() {
        let disk = disk(64 << 20).unwrap();
        disk.make("ext4", &["-q", "-F"]).unwrap();
        let mounted = disk.mount("ext4", "").unwrap();
        println!("\nwaiting");
        loop {
            let file = std::fs::File::create(mounted.path().join("file")).unwrap();
            file.sync_all().unwrap();
        }
    }
    if disk(64 << 20).is_none() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = "program::a_process_killed_while_it_waits_for_its_own_disk_goes_away";
    for _ in 0..3 {
        let mut child = Command::new(&program)
            .args(["--exact", name, "--nocapture"])
            .env(ROLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let is_waiting = out.lines().map_while(Result::ok).any(|line| line == "waiting");
        child.kill().unwrap();
        assert!(is_waiting, "the other process has no disk");
        eventually("the process is gone", || child.try_wait().unwrap().is_some());
        eventually("its disk is gone", || !has_disk(child.id()));
    }
}
