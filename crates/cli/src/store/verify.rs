//! `haul store verify`: reads all objects and verifies their checksums. `haul store accept-damage`:
//! records that the loss of unknown objects in damaged regions is accepted.

use std::collections::HashSet;
use std::path::Path;

use haul_file_store::Damage;
use haul_store_pool::Pool;
use serde_json::{Value, json};

use super::missing;
use crate::args::{AcceptDamageArgs, VerifyArgs};
use crate::open_store::damage_line;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Failure, OrFail, Result};
use crate::units::Count;

/// Verifies the whole store. `found` is the damage found by recovery. This damage is reported, too,
/// because the verification misses affected objects that are no longer in the index.
pub(super) fn run(store: &Pool, found: &[Damage], args: &VerifyArgs) -> Result {
    let stats = store.stats();
    let all = Amount { things: stats.objects, bytes: stats.object_bytes };
    let progress = Progress::new(args.progress.show, "object", all);
    let verified = store
        .verify(&mut |things, bytes| progress.set(Amount { things, bytes }))
        .or_fail(|| "cannot verify the store".to_owned())?;
    progress.set(Amount { things: verified.objects, bytes: verified.bytes });
    let done = progress.finish();
    let damage = merged(found, verified.damage);

    let mut output = Output::new();
    for damage in &damage {
        if args.json {
            output.line(damage_json(damage))?;
        } else {
            output.line(damage_line(damage))?;
        }
    }
    if args.json {
        output.line(json!({
            "kind": "summary",
            "objects": verified.objects,
            "bytes": verified.bytes,
            "damaged": damage.len(),
            "missing": missing::dirs(store),
        }))?;
    } else {
        output.line(format_args!("verified {done}"))?;
    }
    output.finish()?;
    let count = damage.len() as u64;
    if count == 0 {
        return missing::report(store, "verified");
    }
    let failure = Failure::new(format!("found {}", Count(count, "damaged region")))
        .advise(advice(store.stats().hidden_ranges));
    Err(match missing::text(store, "verified") {
        Some(missing) => failure.advise(missing),
        None => failure,
    })
}

/// Returns the advice to print after damage was found.
fn advice(hidden_ranges: u64) -> &'static str {
    match hidden_ranges {
        0 => "restore the listed objects; all others are intact, and deleted objects stay deleted",
        _ => {
            "some regions held unknown objects: restore the files, or accept the loss with \"haul \
             store accept-damage\"; until then, keys whose latest version may have been there \
             return an error; all others are intact"
        }
    }
}

/// Merges the damage found by recovery with the damage found by the verification. If both found the
/// same region, the result has the entry of the verification, which may name the object.
fn merged(found: &[Damage], verified: Vec<Damage>) -> Vec<Damage> {
    let seen: HashSet<(&Path, u64)> =
        verified.iter().map(|seen| (seen.file.as_path(), seen.offset)).collect();
    let is_new = |damage: &&Damage| !seen.contains(&(damage.file.as_path(), damage.offset));
    let mut damage: Vec<Damage> = found.iter().filter(is_new).cloned().collect();
    damage.extend(verified);
    damage
}

fn damage_json(damage: &Damage) -> Value {
    json!({
        "kind": "damage",
        "bucket": damage.bucket,
        "key": damage.key,
        "file": damage.file.to_string_lossy(),
        "offset": damage.offset,
        "what": damage.what,
    })
}

/// Records that the loss of unknown objects in damaged regions is accepted.
pub(super) fn accept_damage(store: &Pool, args: &AcceptDamageArgs) -> Result {
    let accepted = store.accept_damage().or_fail(|| "cannot accept the damage".to_owned())?;
    let mut output = Output::new();
    if args.json {
        accepted.iter().try_for_each(|damage| output.line(damage_json(damage)))?;
        output.line(json!({
            "kind": "summary",
            "accepted_regions": accepted.len(),
            "missing": missing::dirs(store),
        }))?;
    } else {
        accepted.iter().try_for_each(|damage| output.line(damage_line(damage)))?;
        let regions = Count(accepted.len() as u64, "damaged region");
        output.line(format_args!("accepted the loss of unknown objects in {regions}"))?;
    }
    output.finish()?;
    missing::report(store, "accepted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_found_twice_is_reported_once() {
        let damage = |offset, key: Option<&str>| Damage {
            bucket: None,
            key: key.map(str::to_owned),
            file: "/d/1.vol".into(),
            offset,
            what: "the checksum differs".into(),
        };
        let all = merged(&[damage(0, None), damage(8, None)], vec![damage(8, Some("k"))]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].key.as_deref(), Some("k"));
    }
}
