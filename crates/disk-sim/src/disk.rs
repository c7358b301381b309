//! The disk as a device: FUSE below, a loop device above, file systems on top.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{BackgroundSession, Config, Session, SessionACL};
use haul_test_image::{LoopDevice, mount_detached, run};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::arm::Arm;
use crate::counters::Counters;
use crate::guard::Guard;
use crate::model::Parameters;
use crate::mounted::{Mounted, is_free};
use crate::served::{Obey, Order, Served};
use crate::transport;

/// How long the kernel may take to let go of the disk at the end.
pub(crate) const END_MAX: Duration = Duration::from_secs(10);

/// Where the bytes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// In memory.
    Memory,
    /// In a sparse file without a name in this directory.
    Dir(PathBuf),
}

/// What disk to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The drive.
    pub parameters: Parameters,
    /// Its size. One smaller than the real drive has fewer tracks under the same arm.
    pub bytes: u64,
    /// Where the bytes are kept.
    pub backing: Backing,
    /// Seconds that pass by the clock for each second of the drive: 1 is as slow as the drive, 0.1
    /// ten times faster, 0 as fast as can be; the virtual times in the counters stay the same.
    pub time_scale: f64,
    /// Answers leave as much earlier as the way through FUSE and the loop device costs, so that by
    /// the clock a request takes as long as the drive would. That is measured when the disk starts,
    /// a fifth of a second long, with reads of 4 KiB. No answer leaves before its request came; and
    /// at time scale 0, where nobody waits, there is nothing to hide.
    pub hides_transport: bool,
    /// The scheduler of the loop device: `none`, `mq-deadline`, ...
    pub scheduler: String,
}

impl Options {
    /// A drive of `bytes` in memory, unscaled, that orders its requests by itself.
    #[must_use]
    pub fn new(parameters: Parameters, bytes: u64) -> Self {
        Self {
            parameters,
            bytes,
            backing: Backing::Memory,
            time_scale: 1.0,
            hides_transport: true,
            scheduler: "none".to_owned(),
        }
    }
}

/// A running disk. When it is dropped, or its process ends, all of it is gone.
///
/// The disk is served by threads of this process. One that is killed while it waits for its own
/// disk goes away a second later: a small process beside it sees to that.
#[derive(Debug)]
pub struct SpinningDisk {
    device: Option<LoopDevice>,
    root: Option<OwnedFd>,
    arm: ArmThread,
    served: Receiver<()>,
    _guard: Guard,
}

/// The thread of the arm, which ends with this.
struct ArmThread(Arc<Arm>, Option<JoinHandle<()>>);

impl std::fmt::Debug for ArmThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ArmThread").field(&self.0.counters()).finish()
    }
}

impl ArmThread {
    fn start(arm: Arm) -> Self {
        let arm = Arc::new(arm);
        let its = Arc::clone(&arm);
        Self(arm, Some(std::thread::spawn(move || its.run())))
    }
}

impl Drop for ArmThread {
    fn drop(&mut self) {
        self.0.stop();
        self.1.take().map(JoinHandle::join);
    }
}

impl SpinningDisk {
    /// Starts a disk, all zeros.
    ///
    /// # Errors
    /// What could not be done and why: no root, no FUSE, no loop device, an unknown scheduler, ...
    pub fn start(options: &Options) -> Result<Self, String> {
        let bytes = options.bytes / 4096 * 4096;
        if bytes < 1 << 20 {
            return Err("a disk has 1 MiB at least".to_owned());
        }
        check_time_scale(options.time_scale)?;
        let file = backing(&options.backing, bytes)?;
        let arm = Arm::new(&options.parameters, bytes, file, options.time_scale);
        let arm = ArmThread::start(arm);
        let node = Arc::new(OnceLock::new());
        let name = unique_name();
        let obey = obey(&arm.0, Arc::clone(&node));
        let served = Served { arm: Arc::clone(&arm.0), name: name.clone(), bytes, obey };
        let (root, served, guard) = serve(served)?;
        let device = attach(&root, &name)?;
        set_queue(&device, options)?;
        if options.hides_transport && options.time_scale > 0.0 {
            arm.0.set_transport(transport::measure(&arm.0, device.node())?);
        }
        node.get_or_init(|| device.node().to_owned());
        Ok(Self { device: Some(device), root: Some(root), arm, served, _guard: guard })
    }

    /// The device, such as `/dev/loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        self.device.as_ref().map_or("", LoopDevice::node)
    }

    /// A directory with `counters.json`, and `control`, which takes `cut SEED` and `on`.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        let fd = self.root.as_ref().map_or(-1, |root| root.as_raw_fd());
        format!("/proc/{}/fd/{fd}", std::process::id()).into()
    }

    /// Makes an empty file system on the disk.
    ///
    /// # Errors
    /// Why `mkfs.<fs>` failed.
    pub fn make(&self, fs: &str, mkfs_options: &[&str]) -> Result<(), String> {
        let mkfs = format!("mkfs.{fs}");
        run(Command::new(mkfs).args(mkfs_options).arg(self.device())).map(drop)
    }

    /// Mounts the file system on the disk, for this process and whoever is told the path.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn mount(&self, fs: &str, options: &str) -> Result<Mounted<'_>, String> {
        let root = mount_detached(fs, self.device(), options)
            .map_err(|errno| format!("cannot mount {fs} of {}: {errno}", self.device()))?;
        Ok(Mounted::new(root, self))
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.arm.0.counters()
    }

    /// Lets time pass at another speed from now on, as [`Options::time_scale`] has it: such as 0
    /// while files are made that are read later.
    ///
    /// # Errors
    /// That there is no such scale.
    pub fn set_time_scale(&self, scale: f64) -> Result<(), String> {
        check_time_scale(scale)?;
        self.arm.0.set_time_scale(scale);
        Ok(())
    }

    /// Makes the kernel forget what it remembers of the device itself, such as the metadata of a
    /// file system: the next mount reads it again. For when nothing is mounted from it.
    ///
    /// # Errors
    /// Why `blockdev` failed.
    pub fn forget_cached(&self) -> Result<(), String> {
        forget_cached(self.device())
    }

    /// By how much answers leave earlier: see [`Options::hides_transport`].
    #[must_use]
    pub fn transport(&self) -> Duration {
        self.arm.0.transport()
    }

    /// Takes the power away. Of the writes since the last sync, as many as the write cache holds,
    /// each survives whole, not at all, or in some of its sectors, as the seed has it; so do those
    /// under way. From now on every request fails, until [`SpinningDisk::power_on`].
    ///
    /// # Errors
    /// When the backing store cannot be written.
    pub fn power_cut(&self, seed: u64) -> Result<(), String> {
        cut(&self.arm.0, seed)
    }

    /// Takes the power away by itself, as [`SpinningDisk::power_cut`] does, once this many more
    /// requests were served: while the next one is. [`Counters::power_cuts`] tells that it went.
    pub fn power_cut_after(&self, requests: u64, seed: u64) {
        self.arm.0.power_cut_after(requests, seed);
    }

    /// Gives the power back. What the kernel remembers of the disk is thrown away first.
    ///
    /// # Errors
    /// That something is still mounted from the disk, or that the backing store could not be
    /// written when the power went.
    pub fn power_on(&self) -> Result<(), String> {
        power_on(&self.arm.0, self.device())
    }
}

impl Drop for SpinningDisk {
    fn drop(&mut self) {
        // The kernel writes what it still holds, clears the device, and lets go of its file; then
        // the FUSE file system has no user left and ends.
        self.device = None;
        self.root = None;
        self.served.recv_timeout(END_MAX).ok();
    }
}

fn backing(backing: &Backing, bytes: u64) -> Result<File, String> {
    let (file, place) = match backing {
        Backing::Memory => {
            let memory = memfd_create("spinning-disk", MemfdFlags::CLOEXEC);
            (memory.map(File::from).map_err(Into::into), "memory".to_owned())
        }
        Backing::Dir(dir) => (tempfile::tempfile_in(dir), dir.display().to_string()),
    };
    file.and_then(|file| file.set_len(bytes).map(|()| file))
        .map_err(|error| format!("no room for a disk of {bytes} bytes in {place}: {error}"))
}

/// Mounts the FUSE file system nowhere and serves it from a thread, which tells its end.
fn serve(served: Served) -> Result<(OwnedFd, Receiver<()>, Guard), String> {
    let fuse = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(|error| format!("cannot open /dev/fuse: {error}"))?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
    let root = mount_detached("fuse", "spinning-disk", &options)
        .map_err(|errno| format!("cannot mount a FUSE file system: {errno}"))?;
    let session = Session::from_fd(served, fuse.into(), SessionACL::Owner, Config::default())
        .map_err(|error| format!("the kernel's FUSE does not answer: {error}"))?;
    let (ended, end) = channel::<()>();
    let (guarded, guard) = channel();
    let its_root = root.try_clone().map_err(|error| format!("no descriptor left: {error}"))?;
    std::thread::spawn(move || {
        // The guard asks the file system what it is, and that needs this very thread's session.
        let session = session.spawn();
        guarded.send(Guard::over_this_thread(&its_root)).ok();
        drop(its_root);
        // Its outcome is the end of the connection in one way or another, told by the dropped sender.
        session.and_then(BackgroundSession::join).ok();
        drop(ended);
    });
    let guard = guard.recv().map_err(|error| format!("no guard: {error}"))??;
    Ok((root, end, guard))
}

/// The name of the file that is the disk, as `losetup` shows it: whose it is, and no other's.
fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("spinning-disk-{}-{number}", std::process::id())
}

fn attach(root: &OwnedFd, name: &str) -> Result<LoopDevice, String> {
    let path = format!("/proc/self/fd/{}/{name}", root.as_raw_fd());
    let file = OpenOptions::new().read(true).write(true).open(&path);
    LoopDevice::attach(file.map_err(|error| format!("cannot open the served disk: {error}"))?)
}

/// Tells the kernel what kind of disk it is.
fn set_queue(device: &LoopDevice, options: &Options) -> Result<(), String> {
    let cache = match options.parameters.write_cache_bytes {
        0 => "write through",
        _ => "write back",
    };
    for (name, value) in [
        ("rotational", "1"),
        ("scheduler", options.scheduler.as_str()),
        ("write_cache", cache),
        ("discard_max_bytes", "0"),
    ] {
        let path = Path::new("/sys/block").join(device.name()).join("queue").join(name);
        std::fs::write(&path, value)
            .map_err(|error| format!("cannot write {value:?} to {}: {error}", path.display()))?;
    }
    Ok(())
}

fn obey(arm: &Arc<Arm>, node: Arc<OnceLock<String>>) -> Obey {
    let arm = Arc::clone(arm);
    Arc::new(move |order| match (order, node.get()) {
        (Order::Cut(seed), _) => cut(&arm, seed),
        (Order::On, Some(node)) => power_on(&arm, node),
        (Order::On, None) => Err("the disk is just starting".to_owned()),
    })
}

fn cut(arm: &Arm, seed: u64) -> Result<(), String> {
    arm.power_cut(seed).map_err(not_written)
}

fn power_on(arm: &Arm, node: &str) -> Result<(), String> {
    if arm.has_power() {
        return Ok(());
    }
    is_free(node).map_err(|error| format!("unmount {node} before power on: {error}"))?;
    // While the power is off, nothing the kernel still holds can get to the disk.
    forget_cached(node)?;
    arm.power_on().map_err(not_written)
}

fn forget_cached(node: &str) -> Result<(), String> {
    run(Command::new("blockdev").args(["--flushbufs", node]))
        .map(drop)
        .map_err(|why| format!("cannot make the kernel forget {node}: {why}"))
}

fn check_time_scale(scale: f64) -> Result<(), String> {
    let is_one = (0.0..=1000.0).contains(&scale);
    is_one.then_some(()).ok_or_else(|| "a time scale is 0 to 1000".to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn not_written(error: std::io::Error) -> String {
    format!("cannot write to the backing store: {error}")
}
