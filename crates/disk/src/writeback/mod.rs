//! What becomes of writes that nobody syncs: how much may be dirty, when the kernel writes it, who
//! waits for that, and how the disks below take it.
//!
//! Facts and the kernel's own arithmetic, without an opinion; the settings can be changed, too.
//!
//! # Sources
//! \[VmSysctl\], \[PageWriteback\], \[SysfsBdi\] and \[SysfsBlock\].

mod disks;
mod files;
mod group;
mod journal;
mod limits;
mod memory;
mod mounted;

pub use disks::{DeviceShare, DiskFacts, DiskKind};
pub use files::{KernelFiles, Oddity};
pub use group::GroupMemory;
pub use journal::JournalInfo;
pub use limits::{Amount, DirtyLimits, DirtySettings};
pub use memory::Memory;
pub use mounted::MountFacts;

/// What concerns all writers of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The bytes of a page.
    pub page_bytes: u64,
    /// Its memory.
    pub memory: Memory,
    /// What was asked for.
    pub settings: DirtySettings,
    /// What the kernel itself makes of that, from `/proc/vmstat`.
    pub told: Option<DirtyLimits>,
    /// The control group of the process that asks; `None` where there are none.
    pub group: Option<GroupMemory>,
    /// What is swapped to: devices and files, as `/proc/swaps` names them.
    pub swaps: Vec<String>,
}

impl Machine {
    /// Both limits: as the kernel tells them, else by its arithmetic.
    #[must_use]
    pub fn limits(&self) -> Option<DirtyLimits> {
        self.told.or_else(|| {
            let (background, limit) = (self.settings.background()?, self.settings.limit()?);
            let dirtyable = self.memory.dirtyable_bytes()?;
            Some(DirtyLimits::of(background, limit, dirtyable, self.page_bytes))
        })
    }

    /// The limits in the control group of this process; `None` where it has none of its own.
    #[must_use]
    pub fn group_limits(&self) -> Option<DirtyLimits> {
        let (background, limit) = (self.settings.background()?, self.settings.limit()?);
        let machine = self.memory.dirtyable_bytes()?;
        let dirty = self.memory.dirty_bytes.unwrap_or(0);
        let own = self.group.as_ref()?.dirtyable_bytes(machine, dirty)?;
        Some(DirtyLimits::in_group(background, limit, machine, own, self.page_bytes))
    }
}

impl KernelFiles {
    /// Reads what concerns all writers.
    #[must_use]
    pub fn machine(&self) -> Machine {
        let vm = |name: &str| self.needed_number(&format!("/proc/sys/vm/{name}"));
        let settings = DirtySettings {
            background_percent: vm("dirty_background_ratio"),
            background_bytes: vm("dirty_background_bytes"),
            limit_percent: vm("dirty_ratio"),
            limit_bytes: vm("dirty_bytes"),
            expire_centisecs: vm("dirty_expire_centisecs"),
            writeback_centisecs: vm("dirty_writeback_centisecs"),
            laptop_mode: self.number("/proc/sys/vm/laptop_mode"),
        };
        let swaps = self.text("/proc/swaps").unwrap_or_default();
        let swaps = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        Machine {
            page_bytes: self.page_bytes(),
            memory: self.memory(),
            settings,
            told: self.told(),
            group: group::of_self(self),
            swaps: swaps.map(str::to_owned).collect(),
        }
    }

    fn memory(&self) -> Memory {
        let zones = self.text("/proc/zoneinfo");
        let reserve = zones.as_deref().and_then(memory::reserve_pages);
        if let Some(text) = zones.filter(|_| reserve.is_none()) {
            self.not_understood("/proc/zoneinfo", &text);
        }
        let reserve_bytes = reserve.and_then(|pages| pages.checked_mul(self.page_bytes()));
        let Some(meminfo) = self.needed("/proc/meminfo") else { return Memory::default() };
        let memory = Memory::of(&meminfo, reserve_bytes);
        if memory.dirtyable_bytes().is_none() {
            self.not_understood("/proc/meminfo", &meminfo);
        }
        memory
    }

    fn told(&self) -> Option<DirtyLimits> {
        let vmstat = self.text("/proc/vmstat")?;
        let bytes = |name| memory::named(&vmstat, name)?.checked_mul(self.page_bytes());
        Some(DirtyLimits {
            background_bytes: bytes("nr_dirty_background_threshold")?,
            limit_bytes: bytes("nr_dirty_threshold")?,
        })
    }
}
