//! Our own instance of the kernel's tracing.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use haul_disk::Device;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::parse::Trace;
use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// Room for the events of one pass, for each processor; some 100 bytes an event.
const BUFFER_KIB: u32 = 8 << 10;

const EVENTS: [&str; 2] = ["block_bio_queue", "block_rq_issue"];

/// Makes each instance of a process another.
static INSTANCES: AtomicU32 = AtomicU32::new(0);

/// A tracing instance of our own, which is removed however this process ends.
#[derive(Debug)]
pub(crate) struct Tracing {
    // Dropped in this order: the guardian needs the mount, which it holds by itself too.
    _guardian: Guardian,
    mount: OwnedFd,
    name: String,
}

/// The device numbers whose events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// What the file system asks: the partition, where there is one.
    asked: u64,
    /// What gets requests: the whole disk.
    issued: u64,
}

impl Watched {
    /// Both numbers of a device, as the kernel's filters take them.
    pub(crate) fn of(device: &Device) -> Result<Self> {
        let path = format!("/sys/block/{}/dev", device.disk);
        let text = fs::read_to_string(&path).map_err(Error::other(format!("read {path}")))?;
        let disk = text
            .trim()
            .split_once(':')
            .and_then(|(major, minor)| Some(number(major.parse().ok()?, minor.parse().ok()?)));
        let strange = || Error::Missing(format!("{path} holds no device number: {text:?}"));
        let asked = number(device.major, device.minor);
        Ok(Self { asked, issued: disk.ok_or_else(strange)? })
    }
}

/// The kernel's own packing of a device number.
fn number(major: u32, minor: u32) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

impl Tracing {
    /// A fresh instance; it records nothing yet.
    ///
    /// # Errors
    /// Without root, or a kernel without tracing.
    pub(crate) fn new() -> Result<Self> {
        let mount = mount_privately().map_err(Error::other("mount the tracing file system"))?;
        let number = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let name = format!("instances/haul-{}-{number}", std::process::id());
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        let guardian = Guardian::of(&root, &name, &[])?;
        let tracing = Self { _guardian: guardian, mount, name };
        fs::create_dir(tracing.path("")).map_err(Error::other("make a tracing instance"))?;
        tracing.write("tracing_on", "0")?;
        tracing.write("buffer_size_kb", &BUFFER_KIB.to_string())?;
        Ok(tracing)
    }

    /// A file of the instance. Each is opened anew: an open one would keep it from being removed.
    fn path(&self, file: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{}/{file}", self.mount.as_raw_fd(), self.name).into()
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let what = || format!("set {file} of the kernel's tracing to \"{text}\"");
        fs::write(self.path(file), text).map_err(|source| Error::other(what())(source))
    }

    /// Keeps the requests of a device, and of no other.
    pub(crate) fn watch(&self, device: Watched) -> Result<()> {
        for (event, number) in EVENTS.iter().zip([device.asked, device.issued]) {
            self.write(&format!("events/block/{event}/filter"), &format!("dev == {number}"))?;
            self.write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(())
    }

    /// Empties the trace and records from now on.
    pub(crate) fn start(&self) -> Result<()> {
        self.write("trace", "")?;
        self.write("tracing_on", "1")?;
        self.write("trace_marker", &self.name)
    }

    /// Records no more, and gives what there is.
    pub(crate) fn stop(&self) -> Result<Trace> {
        self.write("tracing_on", "0")?;
        let text = fs::read(self.path("trace")).map_err(Error::other("read the kernel's trace"))?;
        Ok(Trace::parse(&String::from_utf8_lossy(&text), &self.name))
    }
}

/// The tracing file system, mounted nowhere: it goes with its descriptor.
fn mount_privately() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::empty();
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
