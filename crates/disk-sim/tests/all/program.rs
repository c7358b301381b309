//! Tests that the device and the mounts disappear when the process with a simulated disk ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use haul_testing::{child_test, eventually, run};

use crate::disk;

/// Returns `true` if a loop device uses a disk of this process.
fn has_disk(process: u32) -> bool {
    let prefix = format!("/spinning-disk-{process}-");
    let devices = std::fs::read_dir("/sys/block").expect("there are devices");
    devices.flatten().any(|device| {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file"));
        file.is_ok_and(|file| file.starts_with(&prefix))
    })
}

fn is_mounted(dir: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there are mounts");
    mounts.contains(&format!(" {} ", dir.display()))
}

/// Starts the program with ext4 mounted on `dir`, and waits for its output.
fn started_on(dir: &Path) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_spinning-disk"))
        .args(["--memory", "--size", "64M", "--time-scale", "0", "--fs", "ext4", "--mount"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let out = BufReader::new(program.stdout.take().expect("stdout is piped"));
    let lines: Vec<_> = out.lines().map_while(Result::ok).take(4).collect();
    assert!(lines[0].starts_with("device /dev/loop") && lines[1].starts_with("control /proc/"));
    // At time scale 0 the overhead of FUSE and the loop device is not measured.
    assert_eq!(lines[2], "transport 0 us");
    assert_eq!(lines[3], format!("mount {}", dir.display()));
    program
}

#[test]
fn program_cleans_up_after_any_signal() {
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
fn process_killed_while_waiting_for_its_own_disk_ends() {
    const ROLE: &str = "HAUL_WAITS_FOR_ITS_OWN_DISK";
    if std::env::var_os(ROLE).is_some() {
        let disk = disk(64 << 20).unwrap();
        disk.mkfs("ext4", &["-q", "-F"]).unwrap();
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
    let name = "program::process_killed_while_waiting_for_its_own_disk_ends";
    for _ in 0..3 {
        let mut child = child_test(name).env(ROLE, "1").spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let is_waiting = out.lines().map_while(Result::ok).any(|line| line == "waiting");
        child.kill().unwrap();
        assert!(is_waiting, "the child has no disk");
        eventually("the process has ended", || child.try_wait().unwrap().is_some());
        eventually("its disk is detached", || !has_disk(child.id()));
    }
}
