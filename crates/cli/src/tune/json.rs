//! Formats the results of `haul tune` as JSON. The module does no I/O.

use haul_disk::{DirtyLimits, DiskKind, GroupMemory, Machine};
use serde_json::{Value, json};

use haul_tuning::{Case, Finding, RateSource, Remedy, Setting, Severity, Target, outlook};

/// Returns all results as one JSON object.
pub(super) fn json(case: &Case, findings: &[Finding], done: Option<Value>) -> Value {
    let limits = case.machine.limits();
    json!({
        "machine": machine(&case.machine),
        "file_systems": case.targets.iter().map(|one| place(one, limits)).collect::<Vec<_>>(),
        "writers": outlook::writers(case),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "applied": done,
    })
}

fn machine(machine: &Machine) -> Value {
    let (memory, settings) = (&machine.memory, &machine.settings);
    json!({
        "memory": {
            "total_bytes": memory.total_bytes,
            "available_to_writers_bytes": memory.dirtyable_bytes(),
            "dirty_bytes": memory.dirty_bytes,
            "writeback_bytes": memory.writeback_bytes,
            "swap_bytes": memory.swap_bytes,
            "swaps": machine.swaps,
        },
        "settings": {
            "dirty_background_ratio": settings.background_percent,
            "dirty_background_bytes": settings.background_bytes,
            "dirty_ratio": settings.limit_percent,
            "dirty_bytes": settings.limit_bytes,
            "dirty_expire_centisecs": settings.expire_centisecs,
            "dirty_writeback_centisecs": settings.writeback_centisecs,
            "laptop_mode": settings.laptop_mode,
        },
        "limits": machine.limits().map(limits),
        "group": machine.group.as_ref().map(|one| group(one, machine.group_limits())),
    })
}

fn limits(limits: DirtyLimits) -> Value {
    json!({
        "background_bytes": limits.background_bytes,
        "slow_from_bytes": limits.freerun_ceiling_bytes(),
        "wait_bytes": limits.limit_bytes,
    })
}

fn group(group: &GroupMemory, own: Option<DirtyLimits>) -> Value {
    json!({
        "name": group.group,
        "version": if group.is_version_1 { 1 } else { 2 },
        "limit_bytes": group.limit_bytes,
        "limits": own.map(limits),
    })
}

fn place(place: &Target, limits: Option<DirtyLimits>) -> Value {
    let facts = &place.facts;
    let times = limits.map(|limits| place.rate.times(limits.limit_bytes));
    let disks = facts.disks.iter().map(|disk| {
        json!({
            "name": disk.name,
            "kind": match disk.kind {
                DiskKind::Nvme => "nvme",
                DiskKind::Scsi => "scsi",
                DiskKind::Card => "card",
                DiskKind::Virtual => "virtual",
                DiskKind::Loop => "loop",
                DiskKind::Other => "other",
            },
            "rotational": disk.queue.rotational,
            "scheduler": disk.queue.scheduler,
            "schedulers": disk.schedulers,
            "queue_depth": disk.queue.depth,
            "volatile_write_cache": disk.queue.volatile_write_cache,
            "wbt_lat_us": disk.read_latency_us,
            "zoned": disk.is_zoned,
        })
    });
    json!({
        "point": place.point(),
        "file_system": facts.file_system.to_string(),
        "device": facts.device.as_ref().map(|device| &device.name),
        "options": facts.options,
        "journal": facts.journal,
        "readahead_bytes": facts.queue.readahead_bytes,
        "dirty_share_percent": facts.share.percent_max,
        "dirty_share_strict": facts.share.is_strict,
        "disks": disks.collect::<Vec<_>>(),
        "spins": place.is_rotational(),
        "rate": {
            "low_bytes_per_s": place.rate.low,
            "high_bytes_per_s": place.rate.high,
            "known": match place.rate.known {
                RateSource::Measured => "measured",
                RateSource::Given => "given",
                RateSource::ByKind(_) => "expected",
            },
        },
        "stall_s": times.map(|(least, most)| json!([least.as_secs_f64(), most.as_secs_f64()])),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "what": finding.name.replace(' ', "_"),
        "about": finding.about,
        "weight": match finding.severity {
            Severity::Danger => "danger",
            Severity::Slow => "slow",
            Severity::Note => "note",
        },
        "text": finding.text,
        "set": match &finding.remedy {
            Some(Remedy::Settings(settings)) => settings.iter().map(setting).collect(),
            _ => Vec::new(),
        },
        "by_hand": match &finding.remedy {
            Some(Remedy::ByHand(command)) => Some(command),
            _ => None,
        },
        "source": finding.source,
    })
}

/// Returns a setting and its undo command as JSON.
pub(super) fn setting(setting: &Setting) -> Value {
    json!({
        "name": setting.name,
        "path": setting.path,
        "old": setting.old,
        "new": setting.new,
        "undo": setting.undo(),
    })
}
