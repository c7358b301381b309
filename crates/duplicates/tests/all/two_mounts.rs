//! Tests that one file seen through two mounts is not taken for two copies: union mounts, file
//! systems in user space, and bind mounts of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use haul_duplicates::act::{Action, Options};
use haul_testing::{eventually, skip};
use rustix::fs::{XattrFlags, setxattr};

use crate::actions::{group, options, process};
use crate::disk_dir;

/// A mount that ends with the test.
struct Mounted {
    at: PathBuf,
    server: Option<Child>,
}

impl Mounted {
    fn overlay(dir: &Path, name: &str, lower: &str, upper: &str) -> Option<Self> {
        let work = format!("{upper}-work");
        for dir in [&work, upper].map(|name| dir.join(name)) {
            fs::create_dir_all(dir).unwrap();
        }
        let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        Self::kernel(dir, name, &["-t", "overlay", "none", "-o", &layers])
    }

    /// Calls mount(8) in `dir` with these arguments; `None` if it fails.
    fn kernel(dir: &Path, name: &str, arguments: &[&str]) -> Option<Self> {
        let at = dir.join(name);
        if !at.exists() {
            fs::create_dir_all(&at).unwrap();
        }
        let mut mount = Command::new("mount");
        mount.current_dir(dir).args(arguments).arg(&at).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        is_mounted.then_some(Self { at, server: None })
    }

    /// Mounts a directory once more through a server in user space; `None` without the program.
    fn user_space(dir: &Path, name: &str, program: &str, arguments: &[&str]) -> Option<Self> {
        let at = dir.join(name);
        fs::create_dir_all(&at).unwrap();
        let device = |path: &Path| rustix::fs::stat(path).unwrap().st_dev;
        let outside = device(dir);
        let mut server = Command::new(program);
        server.current_dir(dir).args(arguments).arg(&at);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        eventually("the file system is mounted", || device(&at) != outside);
        Some(Self { at, server: Some(server) })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.at).status().ok();
        if let Some(server) = &mut self.server {
            server.kill().ok();
            server.wait().ok();
        }
    }
}

/// All actions that take away a name of the file.
fn actions(dir: &Path) -> [Action; 4] {
    [Action::Remove, Action::HardLink, Action::SymLink, Action::Move(dir.join("moved"))]
}

/// Processes two paths of one file in both orders and asserts that nothing happens to it.
fn assert_untouched(dir: &Path, shown: &Path, stored: &Path) {
    for action in actions(dir) {
        for paths in [[shown, stored], [stored, shown]] {
            let all = group(&paths.map(PathBuf::from));
            for dry_run in [true, false] {
                let done = process(Options { dry_run, ..options(action.clone()) }, &all);
                assert!(done.done.is_empty(), "{action:?} of {paths:?}");
                assert_eq!(done.skipped.len(), 1, "{action:?} of {paths:?}");
            }
            for path in paths {
                let is_file = fs::symlink_metadata(path).unwrap().is_file();
                assert!(is_file && fs::read(path).unwrap() == b"only", "{action:?} of {paths:?}");
            }
        }
    }
    assert!(!dir.join("moved").exists());
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("requires root");
    }
    is_root
}

#[test]
fn overlay_and_its_layers_show_one_file() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::create_dir(dir.join("lower")).unwrap();
    fs::write(dir.join("lower/f"), "only").unwrap();
    if !is_root() {
        return;
    }
    let Some(overlay) = Mounted::overlay(dir, "merged", "lower", "upper") else {
        return skip("overlay cannot be mounted");
    };
    assert_untouched(dir, &overlay.at.join("f"), &dir.join("lower/f"));
    // A file that the upper layer stores.
    fs::write(overlay.at.join("g"), "only").unwrap();
    assert_untouched(dir, &overlay.at.join("g"), &dir.join("upper/g"));
    // An overlay of the overlay.
    let Some(second) = Mounted::overlay(dir, "second", "merged", "upper2") else {
        return skip("overlay of an overlay cannot be mounted");
    };
    assert_untouched(dir, &second.at.join("f"), &dir.join("lower/f"));
}

/// Sets the times of a file, without opening it for writing.
fn set_old_times(path: &Path) {
    File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn overlay_that_stores_times_and_content_in_two_layers_shows_one_file() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::create_dir(dir.join("lower")).unwrap();
    fs::write(dir.join("lower/f"), "only").unwrap();
    if !is_root() {
        return;
    }
    fs::create_dir(dir.join("upper")).unwrap();
    fs::create_dir(dir.join("work")).unwrap();
    let layers = "metacopy=on,lowerdir=lower,upperdir=upper,workdir=work";
    let overlay = Mounted::kernel(dir, "merged", &["-t", "overlay", "none", "-o", layers]);
    let Some(overlay) = overlay else { return skip("overlay cannot be mounted") };
    // Copies only the metadata to the upper layer.
    set_old_times(&overlay.at.join("f"));
    assert_eq!(fs::read(dir.join("upper/f")).unwrap(), [0; 4]);
    assert_untouched(dir, &overlay.at.join("f"), &dir.join("lower/f"));

    // The upper layer is now one without content, and `lower` a data-only layer.
    drop(overlay);
    let layers = ["-t", "overlay", "none", "-o", "lowerdir=upper::lower"];
    let Some(overlay) = Mounted::kernel(dir, "data-only", &layers) else {
        return skip("overlay with a data-only layer cannot be mounted");
    };
    // Only a file with a redirect is looked up in a data-only layer.
    let redirect = |value: &[u8]| {
        let flags = XattrFlags::empty();
        setxattr(dir.join("upper/f"), "trusted.overlay.redirect", value, flags).unwrap();
    };
    redirect(b"/f");
    assert_untouched(dir, &overlay.at.join("f"), &dir.join("lower/f"));
}

#[test]
fn copies_in_an_overlay_and_elsewhere_are_two_files() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::create_dir(dir.join("lower")).unwrap();
    fs::write(dir.join("lower/f"), "only").unwrap();
    if !is_root() {
        return;
    }
    let Some(overlay) = Mounted::overlay(dir, "merged", "lower", "upper") else {
        return skip("overlay cannot be mounted");
    };
    // With the times of the original, so that only the lease tells them apart.
    let copied = Command::new("cp").args(["-p", "lower/f", "copy"]).current_dir(dir).status();
    assert!(copied.unwrap().success());
    fs::copy(dir.join("lower/f"), overlay.at.join("g")).unwrap();
    let [shown, copy] = [overlay.at.join("f"), dir.join("copy")];
    let removed = process(options(Action::Remove), &group(&[shown.clone(), copy.clone()]));
    assert_eq!(removed.done, [copy], "{:?}", removed.skipped);
    let inside = group(&[shown, overlay.at.join("g")]);
    assert_eq!(process(options(Action::Remove), &inside).done, [overlay.at.join("g")]);
}

/// Processes names of one file with `match_links`, in both orders, and asserts that none of them
/// is removed for another one of `names`.
fn assert_names_untouched(dir: &Path, names: [&Path; 2]) {
    for action in actions(dir) {
        for paths in [names, [names[1], names[0]]] {
            let mut matching = options(action.clone());
            matching.rules.match_links = true;
            let done = process(matching, &group(&paths.map(PathBuf::from)));
            assert!(done.done.is_empty(), "{action:?} of {paths:?}");
            for path in paths {
                let is_file = fs::symlink_metadata(path).unwrap().is_file();
                assert!(is_file && fs::read(path).unwrap() == b"only", "{action:?} of {paths:?}");
            }
        }
    }
}

#[test]
fn bind_mounts_are_no_names_that_keep_a_file() {
    let dir = disk_dir();
    let dir = dir.path();
    for name in ["file", "directory"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    fs::write(dir.join("directory/f"), "only").unwrap();
    fs::write(dir.join("file/f"), "").unwrap();
    let [stored, shown] = ["directory/f", "file/f"].map(|name| dir.join(name));
    if !is_root() {
        return;
    }
    let bind = |from: &str, to: &str| Mounted::kernel(dir, to, &["--bind", from]);
    let Some(file) = bind("directory/f", "file/f") else { return skip("no bind mounts") };
    let Some(other) = bind("directory", "other") else { return skip("no bind mounts") };
    let other_name = other.at.join("f");
    // One link, then two: the number of links alone does not show that there is one name.
    for link in ["directory/g", "directory/h"] {
        assert_names_untouched(dir, [&stored, &shown]);
        assert_names_untouched(dir, [&stored, &other_name]);
        assert_names_untouched(dir, [&shown, &other_name]);
        fs::hard_link(&stored, dir.join(link)).unwrap();
    }
    // Another copy is removed for a copy, not for the mount.
    let copies = ["copy1", "copy2"].map(|name| dir.join(name));
    copies.iter().for_each(|copy| fs::write(copy, "only").unwrap());
    let removed = process(options(Action::Remove), &group(&[shown.clone(), copies[0].clone()]));
    assert!(removed.done.is_empty() && removed.skipped[0].1.contains("mount point"));
    let mut keep_two = options(Action::Remove);
    keep_two.rules.keep_count = 2;
    let removed = process(keep_two, &group(&[shown, copies[0].clone(), copies[1].clone()]));
    assert_eq!(removed.done, [&*copies[1]], "{:?}", removed.skipped);
    drop(file);
}

#[test]
fn file_systems_in_user_space_show_one_file() {
    let dir = disk_dir();
    let dir = dir.path();
    fs::create_dir(dir.join("stored")).unwrap();
    fs::write(dir.join("stored/f"), "only").unwrap();
    if !is_root() {
        return;
    }
    let stored = dir.join("stored");
    let stored = stored.to_str().unwrap();
    let mut tried = 0;
    for (program, arguments) in [
        ("bindfs", &["-f", stored][..]),
        ("fuse-overlayfs", &["-f", "-o", &format!("lowerdir={stored}")][..]),
        ("mergerfs", &["-f", stored][..]),
    ] {
        let Some(mounted) = Mounted::user_space(dir, program, program, arguments) else {
            skip(&format!("{program} is not installed"));
            continue;
        };
        tried += 1;
        assert_untouched(dir, &mounted.at.join("f"), &dir.join("stored/f"));
    }
    println!("{tried} file systems in user space");
}
