//! A spinning disk, simulated: as a machine that answers with times, and as a block device.
//!
//! # What it is
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
//! - Times never run backwards; the parts of the time add up to it; a request is never put off
//!   longer than the drive's patience, and nothing overtakes a sync.
//! - After a power cut each sector holds what was synced last, or something written since; the
//!   seed says which. What was synced is whole.
//! - When a disk is dropped, or its process ends in any way, the kernel takes all of it away.
//!
//! # Cost
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

mod arm;
mod counters;
mod disk;
mod guard;
mod medium;
mod model;
mod mounted;
mod plot;
mod random;
mod served;
mod transport;

pub use counters::{Counters, Parts};
pub use disk::{Backing, Options, SpinningDisk};
pub use model::{Drive, Kind, MS, Nanos, Parameters, Request, SECTOR_BYTES};
pub use mounted::Mounted;
pub use plot::plot;
