//! `haul store verify`.

use haul_file_store::{Damage, Store};
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::opening::damage_line;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Failure, OrFail, Result};
use crate::units::Count;

/// Reads everything back. `found` is the damage opening the store met, which is told once more:
/// what it hit may no longer be known by any name.
pub(super) fn run(store: &Store, found: &[Damage], args: &VerifyArgs) -> Result {
    let stats = store.stats();
    let all = Amount { things: stats.objects, bytes: stats.object_bytes };
    let progress = Progress::new("object", all);
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
        }))?;
    } else {
        output.line(format_args!("read {done}"))?;
    }
    output.finish()?;
    match damage.len() as u64 {
        0 => Ok(()),
        count => Err(Failure::new(format!("{} found", Count(count, "damaged place")))
            .advise("restore these objects from elsewhere; all others are as they were stored")),
    }
}

/// Both together, each place once; what tells more names comes from the verification.
fn merged(found: &[Damage], verified: Vec<Damage>) -> Vec<Damage> {
    let is_new = |damage: &&Damage| {
        !verified.iter().any(|seen| seen.file == damage.file && seen.offset == damage.offset)
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_met_twice_is_told_once() {
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
