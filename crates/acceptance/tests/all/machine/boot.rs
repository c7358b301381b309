//! Boots a machine: its own systemd, processes, network and control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use haul_testing::{disk_dir, eventually, skip};

use super::{Machine, ROOT, image};
use crate::program::output_text;

/// Executes systemd as the first process of the machine.
const BOOT: &str = include_str!("boot.sh");

/// Enters the control group `$0`, and then runs the other arguments.
const ENTER: &str = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;

/// Each kind of namespace that the machine does not share with this system.
const NAMESPACES: [&str; 6] = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"];

/// The control group of a machine, in which its systemd creates others.
pub(crate) struct Cgroup {
    path: PathBuf,
    /// The first process of the machine.
    init: u32,
}

impl Cgroup {
    /// Creates a control group in the hierarchy of version 2.
    fn create() -> Result<PathBuf, String> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let is_unified = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
        let mount = mounts.lines().find(is_unified).and_then(|line| line.split(' ').nth(1));
        let mount = mount.ok_or("no control groups of version 2 are mounted")?;
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(mount).join(format!("haul-test-{}-{number}", std::process::id()));
        let created = fs::create_dir(&path);
        created.map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(path)
    }

    /// Kills all processes of the machine, and removes the groups.
    pub(super) fn remove(self, holder: &mut Child) {
        let kill = format!("kill -KILL {}", self.init);
        Command::new("sh").args(["-c", &kill]).status().ok();
        holder.wait().ok();
        let remove = ["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"];
        eventually("the control groups are empty", || {
            Command::new("find").arg(&self.path).args(remove).stderr(Stdio::null()).status().ok();
            !self.path.exists()
        });
    }
}

impl Machine {
    /// Boots a machine, with writable views of other directories of this system, and waits until its
    /// systemd has started all services. If that fails, skips the test and returns `None`.
    pub(crate) fn boot(views: &[&Path]) -> Option<Self> {
        let (image, dir) = (image()?, disk_dir());
        let group = Cgroup::create().map_err(|reason| skip(&reason)).ok()?;
        let script = [ROOT, BOOT].concat();
        let stderr = dir.path().join("stderr");
        let mut holder = Command::new("sh");
        holder.args(["-c", ENTER]).arg(&group).arg("unshare").args(NAMESPACES);
        holder.args(["--fork", "--kill-child", "--propagation", "private", "sh", "-c", &script]);
        holder.arg("sh").arg(dir.path()).arg(image).args(views);
        holder.stdin(Stdio::null()).stdout(Stdio::null());
        holder.stderr(fs::File::create(&stderr).unwrap());
        let mut holder = holder.spawn().unwrap();
        let mut init = None;
        eventually("the machine boots", || {
            init = first_process(holder.id());
            init.is_some() || holder.try_wait().unwrap().is_some()
        });
        let Some(init) = init else {
            fs::remove_dir(&group).ok();
            let reason = fs::read_to_string(stderr).unwrap();
            skip(&format!("cannot boot a machine: {reason}"));
            return None;
        };
        let id = init.to_string();
        let enter = ["nsenter", "--target", &id].into_iter().chain(NAMESPACES);
        let enter = enter.map(str::to_owned).collect();
        let root = PathBuf::from(format!("/proc/{id}/root"));
        let cgroup = Some(Cgroup { path: group, init });
        let machine = Self { holder, enter, root, cgroup, _dir: dir };
        machine.wait_until_booted();
        Some(machine)
    }

    fn wait_until_booted(&self) {
        let mut state = String::new();
        eventually("systemd has started all services", || {
            let output = self.output(&["systemctl", "is-system-running", "--wait"]);
            state = output_text(&output);
            ["running", "degraded"].iter().any(|word| state.contains(word))
        });
        let failed = self.output(&["systemctl", "--failed", "--no-legend", "--plain"]);
        assert!(state.contains("running"), "{state}{}", output_text(&failed));
    }
}

/// Returns the child of `unshare`, once it executes systemd.
fn first_process(unshare: u32) -> Option<u32> {
    let children = format!("/proc/{unshare}/task/{unshare}/children");
    let children = fs::read_to_string(children).ok()?;
    let init = children.split_whitespace().next()?.parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{init}/comm")).ok()?;
    (name == "systemd\n").then_some(init)
}
