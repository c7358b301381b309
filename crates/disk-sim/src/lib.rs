//! Simulated disks: one in memory that loses power and fails when told to, and a spinning one.
//!
//! # What it is
//! [`MemoryDisk`] is a [`haul_disk::Disk`] without a kernel. A test cuts its power after any step
//! and gets what a [`Device`] of some kind may leave, lets any call fail, and counts what it asks.
//! [`crash_everywhere`] does so at each step of a workload. [`FaultyDisk`] puts the same faults
//! before another disk. All of it works without the feature `spinning`, which is about the rest:
//!
//! [`Drive`] is told requests with the times they arrive, and answers when each is done: with a
//! seek curve, a platter that turns, zones, a read-ahead cache, a write cache and a queue of which
//! the nearest is served first. It has no clock, so the same requests always take the same time.
//!
//! [`SpinningDisk`] puts a drive under a loop device, through FUSE and past all caches. Any file
//! system goes on top. It takes as long as the drive would, or as you like, counts what it is
//! asked, and loses its power and its volatile write cache on command.
//!
//! # Example
//! ```
//! use haul_disk::{Disk, Durability, Open, write_full};
//! use haul_disk_sim::{MemoryDisk, Survival};
//!
//! let disk = MemoryDisk::default();
//! let file = disk.create("greeting", Open::default())?;
//! write_full(&*file, b"hello", 0)?;
//! file.sync(Durability::Data)?;
//! let after = |survival| MemoryDisk::on(&disk.medium().cut(survival)).list("");
//! assert!(after(Survival::Nothing)?.is_empty(), "its name was not synced");
//! assert_eq!(after(Survival::Everything)?, ["greeting"]);
//! disk.sync_dir("")?;
//! assert_eq!(after(Survival::Nothing)?, ["greeting"]);
//! # Ok::<(), haul_disk::Error>(())
//! ```
//! A drive that tells times:
//! ```
//! use haul_disk_sim::{Drive, Kind, MS, Parameters, Request};
//!
//! let mut drive = Drive::new(Parameters::travelstar_7k320(), 1 << 30);
//! let read = |sector, arrived_ns| Request { kind: Kind::Read, sector, sectors: 8, arrived_ns };
//! let there = drive.serve(&read(1_000_000, 0));
//! let next_to_it = drive.serve(&read(1_000_008, there)) - there;
//! assert!(there > 2 * MS && next_to_it < MS / 2);
//! assert_eq!(drive.counters().seeks, 1);
//! ```
//! As a device, which needs root:
//! ```
//! use haul_disk_sim::{Options, Parameters, SpinningDisk};
//!
//! let mut options = Options::new(Parameters::travelstar_7k320(), 64 << 20);
//! options.time_scale = 0.0; // as fast as can be
//! let Ok(disk) = SpinningDisk::start(&options) else { return Ok(()) };
//! disk.make("ext4", &["-q", "-F"])?;
//! let mounted = disk.mount("ext4", "")?;
//! std::fs::write(mounted.path().join("greeting"), "hello").unwrap();
//! disk.power_cut(42)?; // nothing was synced: the greeting may be lost
//! drop(mounted);
//! disk.power_on()?;
//! disk.mount("ext4", "")?; // the journal is replayed
//! println!("{} requests", disk.counters().requests);
//! # Ok::<(), String>(())
//! ```
//!
//! # Promises
//! - What was synced is whole in every state that a [`Device`] may leave. What a kinder device may
//!   leave, a more hostile one may, too.
//! - The same seed draws the same states of the same steps.
//! - Times never run backwards; the parts of the time add up to it; a request is never put off
//!   longer than the drive's patience, and nothing overtakes a sync.
//! - After a power cut each sector holds what was synced last, or something written since; the
//!   seed says which. What was synced is whole.
//! - When a disk is dropped, or its process ends in any way, the kernel takes all of it away.
//!
//! # Cost
//! In memory a copy of a disk shares its pages; a crash state costs what recovering it does.
//! A microsecond or so a request, and for each choice as much for each request that waits. As a
//! device, about 0.3 ms more by the clock, and two copies of the bytes. That time is measured at
//! the start, and answers leave as much earlier: [`Options::hides_transport`].
//!
//! # What it is not
//! A certain drive: the published numbers are kept, the rest is assumed and said so.
//! `docs/spinning-disk.md` says what may be claimed from it.
//!
//! # Sources
//! \[Ruemmler94\], \[Jacobson91\], \[Travelstar7K320\], \[Deskstar7K1000\], \[FuseControl\],
//! \[man-mount\] in `docs/sources.md`.

#[cfg(feature = "spinning")]
mod arm;
#[cfg(feature = "spinning")]
mod counters;
#[cfg(feature = "spinning")]
mod disk;
#[cfg(feature = "spinning")]
mod guard;
#[cfg(feature = "spinning")]
mod medium;
mod memory;
#[cfg(feature = "spinning")]
mod model;
#[cfg(feature = "spinning")]
mod mounted;
#[cfg(feature = "spinning")]
mod plot;
mod random;
#[cfg(feature = "spinning")]
mod served;
#[cfg(feature = "spinning")]
mod transport;

#[cfg(feature = "spinning")]
pub use counters::{Counters, Parts};
#[cfg(feature = "spinning")]
pub use disk::{Backing, Options, SpinningDisk};
pub use memory::{
    Bytes, CALLS, Crash, Crashes, Device, Faults, FaultyDisk, FileBytes, Medium, MemoryDisk, Note,
    States, Step, Survival, crash_everywhere, crash_until, replay_command, seed, tell_count,
};
#[cfg(feature = "spinning")]
pub use model::{Drive, Kind, MS, Nanos, Parameters, Request, SECTOR_BYTES};
#[cfg(feature = "spinning")]
pub use mounted::Mounted;
#[cfg(feature = "spinning")]
pub use plot::plot;
pub use random::Random;
