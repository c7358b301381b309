//! Records block events in a tracing instance: a trace buffer of the kernel for this process only.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use haul_disk::Device;
use haul_testing::mount_detached;

use super::parse::Trace;
use crate::guardian::Guardian;
use crate::setting::read;
use haul_measure::{Error, Result};

/// The size in KiB of the trace buffer of each CPU. An event takes about 100 bytes, so about 80,000
/// events of a measurement fit.
const BUFFER_KIB: u32 = 8 << 10;

/// The events that attribute a request to the task that caused it.
pub(crate) const REQUESTS: &[&str] = &["block_bio_queue", "block_rq_issue"];

/// The events of all steps of a request, in the order of the steps.
pub(crate) const ALL_STEPS: &[&str] = &[
    "block_bio_remap",
    "block_bio_queue",
    "block_bio_backmerge",
    "block_getrq",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_complete",
];

/// The number of instances this process has created, which makes their names unique.
static INSTANCES: AtomicU32 = AtomicU32::new(0);

/// A tracing instance of this process, which is removed even if the process is killed.
#[derive(Debug)]
pub(crate) struct Tracing {
    // Dropped before `mount`: the drop of the guardian removes the instance from the mount. The
    // guardian's working directory keeps the mount in use even after this process was killed.
    _guardian: Guardian,
    mount: OwnedFd,
    name: String,
}

/// Returns the filter of the events of `device`: the file system submits operations to the partition,
/// if there is one, and the whole disk receives requests.
fn filter(device: &Device) -> Result<String> {
    let path = format!("/sys/block/{}/dev", device.disk);
    let text = read(Path::new(&path))?;
    let disk = text
        .split_once(':')
        .and_then(|(major, minor)| Some(number(major.parse().ok()?, minor.parse().ok()?)));
    let invalid = || Error::Missing(format!("{path} contains no device number: {text:?}"));
    let queued = number(device.major, device.minor);
    Ok(format!("dev == {queued} || dev == {}", disk.ok_or_else(invalid)?))
}

/// Packs a device number as the kernel does (`dev_t`).
fn number(major: u32, minor: u32) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

impl Tracing {
    /// Creates an instance for `events` of `device`, which records nothing before
    /// [`Tracing::start`].
    ///
    /// # Errors
    /// Returns an error without root, or if the kernel does not support tracing.
    pub(crate) fn new(device: &Device, events: &[&str]) -> Result<Self> {
        let filter = filter(device)?;
        // Closing the descriptor unmounts the file system.
        let mount = mount_detached("tracefs", "tracefs", "");
        let mount = mount.map_err(Error::other("mount the tracing file system"))?;
        let number = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let name = format!("instances/haul-{}-{number}", std::process::id());
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        let guardian = Guardian::of(&root, name.as_ref())?;
        let tracing = Self { _guardian: guardian, mount, name };
        fs::create_dir(tracing.path("")).map_err(Error::other("create a tracing instance"))?;
        tracing.write("tracing_on", "0")?;
        tracing.write("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in events {
            tracing.write(&format!("events/block/{event}/filter"), &filter)?;
            tracing.write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(tracing)
    }

    /// Returns the path of a file of the instance. Callers open the file for each access, because
    /// an open file would prevent the removal of the instance.
    fn path(&self, file: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{}/{file}", self.mount.as_raw_fd(), self.name).into()
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let what = || format!("set {file} of the kernel's tracing to \"{text}\"");
        fs::write(self.path(file), text).map_err(|source| Error::other(what())(source))
    }

    /// Clears the trace and starts recording.
    pub(crate) fn start(&self) -> Result<()> {
        self.write("trace", "")?;
        self.write("tracing_on", "1")?;
        self.write("trace_marker", &self.name)
    }

    /// Stops recording and returns the recorded events.
    pub(crate) fn stop(&self) -> Result<Trace> {
        Ok(Trace::parse(&self.stop_text()?, &self.name))
    }

    /// Stops recording and returns the trace as the text that the kernel prints.
    pub(crate) fn stop_text(&self) -> Result<String> {
        self.write("tracing_on", "0")?;
        let text = fs::read(self.path("trace")).map_err(Error::other("read the kernel's trace"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
