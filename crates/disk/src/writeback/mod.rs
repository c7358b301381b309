//! Reads and changes the kernel's writeback settings, and computes, with the kernel's own
//! arithmetic, the amounts of dirty memory at which writeback starts and writers are throttled.
//!
//! The module makes no recommendations: the crate `haul-tuning` derives them from these facts.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[VmSysctl\], \[PageWriteback\], \[SysfsBdi\] and
//! \[SysfsBlock\].

mod disks;
mod files;
mod group;
mod journal;
mod limits;
mod memory;
mod mounted;

pub use disks::{DeviceShare, DiskFacts, DiskKind};
pub use files::{Anomaly, KernelFiles};
pub use group::GroupMemory;
pub use journal::JournalInfo;
pub use limits::{Amount, DirtyLimits, DirtySettings};
pub use memory::Memory;
pub use mounted::MountFacts;

/// A machine's writeback state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The memory page size, in bytes.
    pub page_bytes: u64,
    /// The amounts of free, cached and dirty memory.
    pub memory: Memory,
    /// The settings `vm.dirty_*` and `vm.laptop_mode`.
    pub settings: DirtySettings,
    /// The dirty memory thresholds that the kernel reports in `/proc/vmstat`.
    pub kernel_limits: Option<DirtyLimits>,
    /// This process's control group; `None` if the machine has no memory control groups.
    pub group: Option<GroupMemory>,
    /// The swap devices' and swap files' paths, as in `/proc/swaps`.
    pub swaps: Vec<String>,
}

impl Machine {
    /// Returns the memory that this process can allocate by reclaiming clean page cache: the
    /// machine's, or the process's control group's if that is less. `None` if unknown.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        let clean = |bytes: u64, dirty: Option<u64>| bytes.saturating_sub(dirty.unwrap_or(0));
        let machine = clean(self.memory.dirtyable_bytes()?, self.memory.dirty_bytes);
        let group = self.group.as_ref().and_then(|group| match group.room_bytes {
            Some(room) => {
                Some(room.saturating_add(clean(group.file_bytes.unwrap_or(0), group.dirty_bytes)))
            }
            None => group.limit_bytes,
        });
        Some(group.map_or(machine, |group| machine.min(group)))
    }

    /// Returns the machine's memory, or the limit for the process's control group if that is less.
    /// `None` if unknown.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let limit = self.group.as_ref().and_then(|group| group.limit_bytes);
        [self.memory.total_bytes, limit].into_iter().flatten().min()
    }

    /// Returns the dirty memory thresholds that the kernel reports; computes them if the kernel
    /// does not report them.
    #[must_use]
    pub fn limits(&self) -> Option<DirtyLimits> {
        self.kernel_limits.or_else(|| {
            let (background, limit) = (self.settings.background()?, self.settings.limit()?);
            let dirtyable = self.memory.dirtyable_bytes()?;
            Some(DirtyLimits::of(background, limit, dirtyable, self.page_bytes))
        })
    }

    /// Returns the dirty memory thresholds for this process's control group; `None` if the kernel
    /// does not limit the group separately.
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
    /// Reads the machine's writeback state.
    #[must_use]
    pub fn machine(&self) -> Machine {
        let vm = |name: &str| self.required_number(&format!("/proc/sys/vm/{name}"));
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
            kernel_limits: self.kernel_limits(),
            group: group::current(self),
            swaps: swaps.map(str::to_owned).collect(),
        }
    }

    fn memory(&self) -> Memory {
        let zones = self.text("/proc/zoneinfo");
        let reserve = zones.as_deref().and_then(memory::reserve_pages);
        if let Some(text) = zones.filter(|_| reserve.is_none()) {
            self.report_malformed("/proc/zoneinfo", &text);
        }
        let reserve_bytes = reserve.and_then(|pages| pages.checked_mul(self.page_bytes()));
        let Some(meminfo) = self.required("/proc/meminfo") else { return Memory::default() };
        let memory = Memory::of(&meminfo, reserve_bytes);
        if memory.dirtyable_bytes().is_none() {
            self.report_malformed("/proc/meminfo", &meminfo);
        }
        memory
    }

    fn kernel_limits(&self) -> Option<DirtyLimits> {
        let vmstat = self.text("/proc/vmstat")?;
        let bytes = |name| memory::named(&vmstat, name)?.checked_mul(self.page_bytes());
        Some(DirtyLimits {
            background_bytes: bytes("nr_dirty_background_threshold")?,
            limit_bytes: bytes("nr_dirty_threshold")?,
        })
    }
}
