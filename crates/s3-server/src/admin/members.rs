//! The members of a store over several disks, in the pages of the admin address.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use haul_admin_endpoint::Exposition;
use haul_admin_endpoint::MetricType::Gauge;
use haul_file_store::ReplicationStatus;
use haul_store_pool::{Member, Pool, Waiting};
use serde_json::{Value, json};

use crate::admin::statistics::replication_json;

/// How long a call waits until `/health` names its disk.
const LONG_WAIT: Duration = Duration::from_secs(5);

/// Returns the lines of `/health` about disks that are missing or refuse writes, and about keys that
/// cannot be moved between disks.
pub(super) fn health(pool: &Pool) -> String {
    let mut lines = String::new();
    if pool.own_store().is_some() {
        return lines;
    }
    for member in pool.members() {
        let dir = member.dir().display();
        if let Some(why) = member.why_missing() {
            lines += &format!(
                "degraded: {dir} is missing, and its keys are not available; all others are: \
                 {why}\n"
            );
        } else if is_latched(member) {
            lines += &format!(
                "degraded: a sync in {dir} failed: writes of its keys are refused until the \
                 server is restarted\n"
            );
        }
        let copy = copy_status(member);
        if let Some(why) = copy.as_ref().and_then(|copy| copy.stopped.as_ref()) {
            lines +=
                &format!("degraded: the copy of {dir} has ended: writes of its keys fail: {why}\n");
        } else if let Some(why) = copy.and_then(|copy| copy.last_error) {
            lines += &format!("degraded: {dir} cannot be copied, and is copied later: {why}\n");
        }
        let Waiting { calls, longest } = member.waiting();
        if longest >= LONG_WAIT {
            let seconds = longest.as_secs();
            lines += &format!(
                "degraded: {dir} does not respond: {calls} requests of its keys wait, the first \
                 for {seconds} s\n"
            );
        }
    }
    let progress = pool.move_progress().unwrap_or_default();
    if let Some(error) = progress.last_error.filter(|_| progress.slots_left > 0) {
        lines += &format!("degraded: a key cannot be moved to its disk: {error}\n");
    }
    lines
}

fn copy_status(member: &Member) -> Option<ReplicationStatus> {
    member.store().ok()?.replication_status()
}

fn is_latched(member: &Member) -> bool {
    member.store().is_ok_and(|store| store.stats().latched)
}

/// Returns the members, and the progress of moving keys between them; `null` for a store in one
/// directory.
pub(super) fn json(pool: &Pool) -> Value {
    let Some(progress) = pool.move_progress() else { return Value::Null };
    let member = |member: &Member| {
        let stats = member.store().ok().map(|store| store.stats());
        let space = space(member);
        json!({
            "number": member.number(),
            "directory": member.dir().display().to_string(),
            "missing": member.why_missing(),
            "latched": stats.as_ref().map(|stats| stats.latched),
            "waiting_seconds": member.waiting().longest.as_secs(),
            "replication": copy_status(member).map(|status| replication_json(&status)),
            "objects": stats.as_ref().map(|stats| stats.objects),
            "volume_bytes": stats.as_ref().map(|stats| stats.volume_bytes),
            "file_system_bytes": space.map(|(bytes, _)| bytes),
            "free_bytes": space.map(|(_, free)| free),
        })
    };
    json!({
        "members": pool.members().iter().map(member).collect::<Vec<_>>(),
        "moving_slots": progress.slots_left,
        "moved_keys": progress.keys,
        "moved_bytes": progress.bytes,
        "move_failures": progress.failures,
        "last_move_error": progress.last_error,
    })
}

/// Returns the metrics of the members; none for a store in one directory.
pub(super) fn metrics(pool: &Pool) -> String {
    let mut out = Exposition::default();
    let Some(progress) = pool.move_progress() else { return out.into_text() };
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&Member) -> Option<u64>| {
        let mut family = out.family(name, Gauge, help);
        for member in pool.members() {
            if let Some(value) = value(member) {
                family.sample(&[("dir", &member.dir().display().to_string())], value);
            }
        }
    };
    gauge("haul_member_up", "1 if the disk is there, 0 if it is missing.", &|member| {
        Some(u64::from(member.why_missing().is_none()))
    });
    gauge("haul_member_latched", "1 after a failed sync of the disk.", &|member| {
        Some(u64::from(is_latched(member)))
    });
    let help = "The time for which a call has waited for the disk, in seconds.";
    gauge("haul_member_waiting_seconds", help, &|member| Some(member.waiting().longest.as_secs()));
    let help =
        "The time for which the copy of the disk has not had all durable writes, in seconds.";
    gauge("haul_member_copy_behind_seconds", help, &|member| {
        Some(copy_status(member)?.behind.map_or(0, |behind| behind.as_secs()))
    });
    let help = "1 if the disk could not be copied at the last attempt, or never again.";
    gauge("haul_member_copy_failing", help, &|member| {
        let status = copy_status(member)?;
        Some(u64::from(status.last_error.is_some() || status.stopped.is_some()))
    });
    gauge("haul_member_objects", "Objects on the disk.", &|member| {
        Some(member.store().ok()?.stats().objects)
    });
    gauge("haul_member_free_bytes", "Free bytes of the disk.", &|member| Some(space(member)?.1));
    let help = "Slots whose keys are being moved between disks.";
    out.gauge("haul_moving_slots", help, progress.slots_left);
    out.counter("haul_moved_keys_total", "Keys moved between disks.", progress.keys);
    out.counter("haul_moved_bytes_total", "Bytes of these keys.", progress.bytes);
    let help = "Failed attempts to move a key.";
    out.counter("haul_move_failures_total", help, progress.failures);
    out.into_text()
}

/// Returns the size of a member's file system and its free space, in bytes.
fn space(member: &Member) -> Option<(u64, u64)> {
    member.store().ok()?;
    let status = rustix::fs::statvfs(member.dir()).ok()?;
    Some((status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize))
}

/// Returns the size and the free space of all file systems with a member, each counted once.
pub(super) fn total_space(pool: &Pool) -> Option<(u64, u64)> {
    let mut spaces = BTreeMap::new();
    for member in pool.members() {
        if let Some(found) = space(member) {
            spaces.insert(std::fs::metadata(member.dir()).ok()?.dev(), found);
        }
    }
    let sum = |sum: (u64, u64), space: (u64, u64)| (sum.0 + space.0, sum.1 + space.1);
    spaces.into_values().reduce(sum)
}
