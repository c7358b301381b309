//! Starts and stops a simulated disk: a loop device whose backing file this process serves through
//! FUSE.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fuser::{BackgroundSession, Config, Session, SessionACL};
use haul_testing::{LoopDevice, mount_detached, run};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::fuse::{ControlCommand, ControlHandler, FuseFileSystem};
use crate::idle::CLOCK_THREAD;
use crate::model::Counters;
use crate::model::Parameters;
use crate::mounted::{END_MAX, MountedFs, wait_until_free};
use crate::queue::{DriveQueue, ServedRead};
use crate::transport;
use crate::watchdog::Watchdog;

/// Where a disk's content is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// The content is in memory.
    Memory,
    /// The content is in an unnamed sparse file in this directory.
    Dir(PathBuf),
}

/// Options for a [`SpinningDisk`].
#[derive(Debug, Clone)]
pub struct Options {
    /// The drive model.
    pub parameters: Parameters,
    /// The disk size in bytes, at least 1 MiB, rounded down to 4 KiB. A disk smaller than the real
    /// drive has fewer tracks, but the same full-stroke seek time.
    pub bytes: u64,
    /// Where the content is stored.
    pub backing: Backing,
    /// The real time per virtual time in the drive, 0 to 1000: 1 is the drive's speed, 0.1 is ten
    /// times faster, and 0 is as fast as possible. The scale does not affect the virtual times in
    /// the counters.
    pub time_scale: f64,
    /// `true` to send each reply earlier than the model computes, by the overhead that FUSE and the
    /// loop device add, so that a request takes the drive's time in real time. The disk measures
    /// the overhead at start with 4 KiB reads, which takes a fifth of a second. A reply never
    /// precedes its request; at time scale 0 the option has no effect.
    pub hides_transport: bool,
    /// `true` to stop the disk's clock after each reply until all threads of this process wait
    /// again, so that a busy machine delays no request. The clock also stops when
    /// [`SpinningDisk::wait_until`] returns. All users of the disk must be threads of this process.
    /// At time scale 0 the option has no effect.
    pub holds_clock: bool,
    /// The loop device's I/O scheduler, such as `none` or `mq-deadline`.
    pub scheduler: String,
}

impl Options {
    /// Returns options for a disk of `bytes` bytes with its content in memory, in real time,
    /// without a kernel scheduler: only the drive reorders requests.
    #[must_use]
    pub fn new(parameters: Parameters, bytes: u64) -> Self {
        Self {
            parameters,
            bytes,
            backing: Backing::Memory,
            time_scale: 1.0,
            hides_transport: true,
            holds_clock: false,
            scheduler: "none".to_owned(),
        }
    }
}

/// A running simulated disk. The disk is removed completely when the value is dropped or its
/// process ends.
///
/// Threads in this process serve the disk. If the process is killed while such a thread waits for
/// the disk, a watchdog process releases the thread within about a second.
#[derive(Debug)]
pub struct SpinningDisk {
    device: Option<LoopDevice>,
    root: Option<OwnedFd>,
    queue: DriveThread,
    /// Locked only to be shared between threads.
    session_end: Mutex<Receiver<()>>,
    _watchdog: Watchdog,
}

/// The drive's request queue, and the threads that serve the queue and run its clock. Dropping the
/// value stops the threads.
struct DriveThread(Arc<DriveQueue>, Vec<JoinHandle<()>>);

impl std::fmt::Debug for DriveThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DriveThread").field(&self.0.counters()).finish()
    }
}

impl DriveThread {
    fn start(queue: DriveQueue, holds_clock: bool) -> Self {
        let queue = Arc::new(queue);
        let for_thread = Arc::clone(&queue);
        let mut threads = vec![std::thread::spawn(move || for_thread.run())];
        if holds_clock {
            let (queue, name) = (Arc::clone(&queue), CLOCK_THREAD.to_owned());
            threads.extend(Builder::new().name(name).spawn(move || queue.run_clock()));
        }
        Self(queue, threads)
    }
}

impl Drop for DriveThread {
    fn drop(&mut self) {
        self.0.stop();
        self.1.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl SpinningDisk {
    /// Starts a disk filled with zeros.
    ///
    /// # Errors
    /// A sentence with the failed step and the reason, such as missing root permission, missing
    /// FUSE, no loop device, or an unknown scheduler.
    pub fn start(options: &Options) -> Result<Self, String> {
        let bytes = options.bytes / 4096 * 4096;
        if bytes < 1 << 20 {
            return Err("cannot start a disk smaller than 1 MiB".to_owned());
        }
        check_time_scale(options.time_scale)?;
        let file = backing(&options.backing, bytes)?;
        let queue = DriveQueue::new(&options.parameters, bytes, file, options.time_scale);
        let queue = DriveThread::start(queue, options.holds_clock);
        let node = Arc::new(OnceLock::new());
        let name = unique_name();
        let on_control = control_handler(&queue.0, Arc::clone(&node));
        let served =
            FuseFileSystem { queue: Arc::clone(&queue.0), name: name.clone(), bytes, on_control };
        let (root, session_end, watchdog) = serve(served)?;
        let device = attach(&root, &name)?;
        set_queue(&device, options)?;
        if options.hides_transport && options.time_scale > 0.0 {
            queue.0.set_transport(transport::measure(&queue.0, device.node())?);
        }
        node.get_or_init(|| device.node().to_owned());
        Ok(Self {
            device: Some(device),
            root: Some(root),
            queue,
            session_end: session_end.into(),
            _watchdog: watchdog,
        })
    }

    /// Returns the device node, such as `/dev/loop3`.
    #[must_use]
    pub fn device(&self) -> &str {
        self.device.as_ref().map_or("", LoopDevice::node)
    }

    /// Returns the control directory's path. Its file `counters.json` contains the counters; the
    /// commands `cut SEED` and `on` can be written to its file `control`.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        let fd = self.root.as_ref().map_or(-1, |root| root.as_raw_fd());
        format!("/proc/{}/fd/{fd}", std::process::id()).into()
    }

    /// Creates an empty file system on the disk.
    ///
    /// # Errors
    /// Fails with the error output from `mkfs.<fs>`.
    pub fn mkfs(&self, fs: &str, mkfs_options: &[&str]) -> Result<(), String> {
        let mkfs = format!("mkfs.{fs}");
        run(Command::new(mkfs).args(mkfs_options).arg(self.device())).map(drop)
    }

    /// Mounts the file system of type `fs` that is on the disk. The mount is not attached to the
    /// directory tree: it is accessible through [`MountedFs::path`].
    ///
    /// # Errors
    /// Returns the system call's error.
    pub fn mount(&self, fs: &str, options: &str) -> Result<MountedFs<'_>, String> {
        let root = mount_detached(fs, self.device(), options)
            .map_err(|errno| format!("cannot mount {fs} of {}: {errno}", self.device()))?;
        Ok(MountedFs::new(root, self.device()))
    }

    /// Returns the drive's counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.queue.0.counters()
    }

    /// Starts to record the reads that the drive serves.
    pub fn record_reads(&self) {
        self.queue.0.record_reads();
    }

    /// Returns the recorded reads in service order, and stops recording.
    #[must_use]
    pub fn take_reads(&self) -> Vec<ServedRead> {
        self.queue.0.take_reads()
    }

    /// Changes [`Options::time_scale`]. For example, a test can create files at scale 0 and read
    /// them at scale 1.
    ///
    /// # Errors
    /// Fails if the scale is not between 0 and 1000.
    pub fn set_time_scale(&self, scale: f64) -> Result<(), String> {
        check_time_scale(scale)?;
        self.queue.0.set_time_scale(scale);
        Ok(())
    }

    /// Returns the present virtual time: the time of the drive.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.queue.0.now()
    }

    /// Waits until the virtual time `time`. At time scale 0, virtual time passes only with requests.
    pub fn wait_until(&self, time: Duration) {
        self.queue.0.wait_until(time);
    }

    /// Drops the kernel's buffers for the device, which contain file system metadata, so that the
    /// next mount reads the metadata again. Call this while nothing is mounted.
    ///
    /// # Errors
    /// Fails with the error output from `blockdev`.
    pub fn drop_buffers(&self) -> Result<(), String> {
        drop_buffers(self.device())
    }

    /// Returns by how much replies precede the times that the model computes; see
    /// [`Options::hides_transport`].
    #[must_use]
    pub fn transport(&self) -> Duration {
        self.queue.0.transport()
    }

    /// Cuts the power. The writes in flight are at risk, and so are the newest writes since the
    /// last sync, up to the write cache size. The seed decides whether each of these writes
    /// survives completely, not at all, or in some of its sectors. All requests fail until
    /// [`SpinningDisk::power_on`].
    ///
    /// # Errors
    /// Fails if the backing store cannot be written.
    pub fn power_cut(&self, seed: u64) -> Result<(), String> {
        cut(&self.queue.0, seed)
    }

    /// Schedules a power cut, as by [`SpinningDisk::power_cut`]: `requests` more requests are
    /// served, and the power is cut during the next one. The cut increases
    /// [`Counters::power_cuts`].
    pub fn power_cut_after(&self, requests: u64, seed: u64) {
        self.queue.0.power_cut_after(requests, seed);
    }

    /// Drops the kernel's buffers for the disk and restores the power.
    ///
    /// # Errors
    /// Fails if a file system on the disk is still mounted, or if the backing store could not be
    /// written when the power was cut.
    pub fn power_on(&self) -> Result<(), String> {
        power_on(&self.queue.0, self.device())
    }
}

impl Drop for SpinningDisk {
    fn drop(&mut self) {
        // The kernel writes dirty buffers, detaches the loop device and closes its backing file.
        // Then nothing uses the FUSE file system, so its session ends.
        self.device = None;
        self.root = None;
        self.session_end.get_mut().recv_timeout(END_MAX).ok();
    }
}

fn backing(backing: &Backing, bytes: u64) -> Result<File, String> {
    let (file, location) = match backing {
        Backing::Memory => {
            let memory = memfd_create("spinning-disk", MemfdFlags::CLOEXEC);
            (memory.map(File::from).map_err(Into::into), "memory".to_owned())
        }
        Backing::Dir(dir) => (tempfile::tempfile_in(dir), dir.display().to_string()),
    };
    file.and_then(|file| file.set_len(bytes).map(|()| file))
        .map_err(|error| format!("cannot allocate a disk of {bytes} bytes in {location}: {error}"))
}

/// Mounts the FUSE file system without attaching it to the directory tree, and serves it from a
/// thread. The returned channel closes when the session ends.
fn serve(served: FuseFileSystem) -> Result<(OwnedFd, Receiver<()>, Watchdog), String> {
    let fuse = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(|error| format!("cannot open /dev/fuse: {error}"))?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
    let root = mount_detached("fuse", "spinning-disk", &options)
        .map_err(|errno| format!("cannot mount a FUSE file system: {errno}"))?;
    let session = Session::from_fd(served, fuse.into(), SessionACL::Owner, Config::default())
        .map_err(|error| format!("cannot start a FUSE session: {error}"))?;
    let (ended, end) = channel::<()>();
    let (watchdog_sender, watchdog) = channel();
    let watched_root =
        root.try_clone().map_err(|error| format!("cannot duplicate a descriptor: {error}"))?;
    std::thread::spawn(move || {
        // The watchdog must be started after the session: it calls `fstat` on the file system,
        // which the session answers.
        let session = session.spawn();
        watchdog_sender.send(Watchdog::for_this_thread(&watched_root)).ok();
        drop(watched_root);
        // After `join`, the FUSE connection has ended, even if the session failed. Dropping the
        // sender `ended` reports this to the receiver.
        session.and_then(BackgroundSession::join).ok();
        drop(ended);
    });
    let watchdog =
        watchdog.recv().map_err(|error| format!("cannot start a watchdog: {error}"))??;
    Ok((root, end, watchdog))
}

/// Returns the name of the disk's file, which `losetup` shows and which is unique among all
/// processes.
fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("spinning-disk-{}-{number}", std::process::id())
}

fn attach(root: &OwnedFd, name: &str) -> Result<LoopDevice, String> {
    let path = format!("/proc/self/fd/{}/{name}", root.as_raw_fd());
    let file = OpenOptions::new().read(true).write(true).open(&path);
    LoopDevice::attach(file.map_err(|error| format!("cannot open {path}: {error}"))?)
}

/// Gives the loop device the drive's request queue attributes, and the scheduler
/// [`Options::scheduler`].
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

fn control_handler(queue: &Arc<DriveQueue>, node: Arc<OnceLock<String>>) -> ControlHandler {
    let queue = Arc::clone(queue);
    Arc::new(move |command| match (command, node.get()) {
        (ControlCommand::Cut(seed), _) => cut(&queue, seed),
        (ControlCommand::On, Some(node)) => power_on(&queue, node),
        (ControlCommand::On, None) => Err("cannot power on: the disk is starting".to_owned()),
    })
}

fn cut(queue: &DriveQueue, seed: u64) -> Result<(), String> {
    queue.power_cut(seed).map_err(not_written)
}

/// The time in which a child process between fork and exec lets go of the disk.
const FREE_MAX: Duration = Duration::from_secs(1);

fn power_on(queue: &DriveQueue, node: &str) -> Result<(), String> {
    if queue.has_power() {
        return Ok(());
    }
    wait_until_free(node, FREE_MAX)
        .map_err(|error| format!("unmount {node} before power on: {error}"))?;
    // The power is off, so dropping the buffers cannot write them to the disk.
    drop_buffers(node)?;
    queue.power_on().map_err(not_written)
}

fn drop_buffers(node: &str) -> Result<(), String> {
    run(Command::new("blockdev").args(["--flushbufs", node]))
        .map(drop)
        .map_err(|why| format!("cannot drop the buffers of {node}: {why}"))
}

fn check_time_scale(scale: f64) -> Result<(), String> {
    let is_valid = (0.0..=1000.0).contains(&scale);
    is_valid.then_some(()).ok_or_else(|| format!("time scale {scale} is not within 0 to 1000"))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn not_written(error: std::io::Error) -> String {
    format!("cannot write to the backing store: {error}")
}
