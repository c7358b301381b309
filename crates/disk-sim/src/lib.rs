//! Simulates disks for tests: a disk in memory with power cuts and injected faults, and a spinning
//! disk that the kernel uses as a block device.
//!
//! # What it is
//! [`MemoryDisk`] is a [`haul_disk::Disk`] in memory. A test can cut its power after any step, and
//! receives a state that a given kind of [`Device`] may leave. The test can also count calls and
//! inject faults into them. [`crash_everywhere`] cuts the power at each step of a workload.
//! [`FaultyDisk`] injects the same faults into another disk. These types need no feature; the
//! feature `spinning` enables the following types.
//!
//! [`Drive`] models a hard disk drive: it receives requests with arrival times and returns
//! completion times. The model has a seek curve, rotation, zones, a read-ahead cache, a write
//! cache, and a queue ordered by access time. It uses no clock: the same requests always take the
//! same time.
//!
//! [`SpinningDisk`] exposes a drive as a loop device whose backing file is served through FUSE and
//! bypasses the page cache. Any file system runs on the device. It counts requests and completes
//! each one at the time that the model computes, optionally scaled. On command it loses its power
//! and its volatile write cache's content.
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
//! A drive that returns completion times:
//! ```
//! use haul_disk_sim::{Drive, Kind, MS, Parameters, Request};
//!
//! let mut drive = Drive::new(Parameters::travelstar_7k320(), 1 << 30);
//! let read = |sector, arrived_ns| Request { kind: Kind::Read, sector, sectors: 8, arrived_ns };
//! let first = drive.serve(&read(1_000_000, 0));
//! let adjacent = drive.serve(&read(1_000_008, first)) - first;
//! assert!(first > 2 * MS && adjacent < MS / 2);
//! assert_eq!(drive.counters().seeks, 1);
//! ```
//! A simulated disk as a block device, which needs root:
//! ```
//! use haul_disk_sim::{Options, Parameters, SpinningDisk};
//!
//! let mut options = Options::new(Parameters::travelstar_7k320(), 64 << 20);
//! options.time_scale = 0.0; // as fast as can be
//! let Ok(disk) = SpinningDisk::start(&options) else { return Ok(()) };
//! disk.mkfs("ext4", &["-q", "-F"])?;
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
//! - Synced data is intact in every state that any kind of [`Device`] may leave. Each kind may
//!   leave all states that the earlier kinds in the enum may leave.
//! - The same seed and the same steps give the same states.
//! - Completion times never decrease, and each service time's components add up to its total. A
//!   request that has waited for longer than [`Parameters::patience_ns`] is served next, and no
//!   request overtakes a sync.
//! - After a power cut of a [`SpinningDisk`], each sector holds the last synced content or a later
//!   write's content, as the seed decides; all sectors in a physical sector
//!   ([`Parameters::physical_sector_bytes`]) hold the same write's content.
//! - When a [`SpinningDisk`] is dropped, or its process ends, even if it is killed, the kernel
//!   removes the device and the FUSE file system.
//!
//! # Cost
//! Copies of a [`Medium`] share their pages, so a test spends its time on a crash state mainly in
//! the recovery that it runs. The drive model takes about a microsecond per request, plus a
//! microsecond for each queued request whenever it chooses the next one. The block device adds
//! about 0.3 ms of real time and two copies of the bytes per request. It measures this overhead at
//! start, and compensates for it by replying earlier than the model computes; see
//! [`Options::hides_transport`].
//!
//! # What it is not
//! The model is not an exact replica of a drive: some figures are published and the others are
//! assumed, as each parameter set's documentation states. `docs/spinning-disk.md` lists the claims
//! that the model supports.
//!
//! # Sources
//! \[Ruemmler94\], \[Jacobson91\], \[Travelstar7K320\], \[Deskstar7K1000\], \[FuseControl\],
//! \[man-mount\] in `docs/sources.md`.

#[cfg(feature = "spinning")]
#[cfg(feature = "spinning")]
mod disk;
#[cfg(feature = "spinning")]
mod fuse;
#[cfg(feature = "spinning")]
mod idle;
#[cfg(feature = "spinning")]
mod medium;
mod memory;
#[cfg(feature = "spinning")]
mod model;
#[cfg(feature = "spinning")]
mod mounted;
#[cfg(feature = "spinning")]
#[cfg(feature = "spinning")]
mod queue;
#[cfg(feature = "spinning")]
mod transport;
#[cfg(feature = "spinning")]
mod watchdog;

#[cfg(feature = "spinning")]
pub use disk::{Backing, Options, SpinningDisk};
pub use memory::{
    Bytes, CALLS, Crash, Crashes, Device, Faults, FaultyDisk, FileBytes, Medium, MemoryDisk, Note,
    States, Step, Survival, crash_everywhere, crash_until, print_count,
};
#[cfg(feature = "spinning")]
pub use model::{Counters, ServiceTime};
#[cfg(feature = "spinning")]
pub use model::{Drive, Kind, MS, Nanos, Parameters, Request, SECTOR_BYTES};
#[cfg(feature = "spinning")]
pub use mounted::MountedFs;
#[cfg(feature = "spinning")]
#[cfg(feature = "spinning")]
pub use queue::ServedRead;
