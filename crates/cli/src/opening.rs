//! Opens a store, and tells what was found on opening it.

use std::fs;
use std::path::Path;

use haul_file_store::{Damage, Error, Options, Recovered, Store};

use crate::args::OpenArgs;
use crate::output::Name;
use crate::report::{Exit, Failure, Result, say};
use crate::units::{Bytes, Count};

/// Whether a store is made where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A new store is what the user wants.
    Make,
    /// There is nothing to do without a store; making one would only hide a mistyped path.
    Refuse,
}

/// The store of `args`. `who` is what other processes hear who ask for it meanwhile. What recovery
/// found is told on stderr.
pub(crate) fn open(args: &OpenArgs, who: &str, missing: Missing) -> Result<(Store, Vec<Damage>)> {
    let dir = &args.data;
    if missing == Missing::Refuse && is_empty(dir) {
        return Err(Failure::new(format!("there is no store in {}", dir.display()))
            .advise("name one with --data; \"haul serve\", \"import\" and \"mb\" make new ones")
            .exit(Exit::NotStarted));
    }
    let options = Options {
        big_object_bytes: args.big_object,
        volume_bytes: args.volume,
        holder: format!("{who}, process {}", std::process::id()),
    };
    let (store, recovered) = Store::open(dir, options).map_err(|error| {
        let exit = match error {
            Error::Invalid { .. } => Exit::Usage,
            _ => Exit::NotStarted,
        };
        let failure = Failure::new(format!("cannot open the store in {}", dir.display()));
        let failure = match error {
            Error::Full { .. } => {
                failure.advise("free space, or choose smaller volumes with --volume")
            }
            _ => failure,
        };
        failure.because(error).exit(exit)
    })?;
    findings(&recovered).iter().for_each(|finding| say(finding));
    Ok((store, recovered.damage))
}

fn is_empty(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// What recovery found, one line each; a store that was closed properly gives none.
fn findings(recovered: &Recovered) -> Vec<String> {
    let mut lines = Vec::new();
    if recovered.after_crash {
        lines.push(format!(
            "the store was not closed properly: recovered {} ({}) in {:.1} s",
            Count(recovered.objects, "object"),
            Bytes(recovered.object_bytes),
            recovered.seconds,
        ));
    }
    if recovered.torn_bytes > 0 {
        lines.push(format!(
            "cut {} off the end of the log: writes that were never acknowledged",
            Bytes(recovered.torn_bytes),
        ));
    }
    if recovered.orphans_removed > 0 {
        lines.push(format!(
            "removed {} of uploads that were never finished",
            Count(recovered.orphans_removed, "file"),
        ));
    }
    lines.extend(recovered.damage.iter().map(damage_line));
    lines
}

/// One line about damaged bytes.
pub(crate) fn damage_line(damage: &Damage) -> String {
    let object = match (&damage.bucket, &damage.key) {
        (Some(bucket), Some(key)) => format!("{bucket}/{}: ", Name(key)),
        (Some(bucket), None) => format!("an object of {bucket}: "),
        _ => String::new(),
    };
    let (file, offset) = (damage.file.display(), damage.offset);
    format!("damaged: {object}{file} at offset {offset}: {}", damage.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_start_says_nothing() {
        assert!(findings(&Recovered { objects: 7, ..Recovered::default() }).is_empty());
    }

    #[test]
    fn a_start_after_a_crash_tells_what_was_found() {
        let damage = Damage {
            bucket: Some("b".into()),
            key: Some("a\nb".into()),
            file: "/d/volumes/1.vol".into(),
            offset: 4096,
            what: "the checksum differs".into(),
        };
        let lines = findings(&Recovered {
            after_crash: true,
            objects: 1200,
            object_bytes: 1 << 20,
            torn_bytes: 10,
            orphans_removed: 1,
            damage: vec![damage],
            seconds: 0.25,
        });
        assert_eq!(lines.len(), 4);
        assert!(lines[0].contains("1,200 objects (1 MiB)"), "{}", lines[0]);
        let told = "damaged: b/a\\nb: /d/volumes/1.vol at offset 4096: the checksum differs";
        assert_eq!(lines[3], told);
    }
}
