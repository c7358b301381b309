//! Names the objects, buckets and uploads in damaged ranges.

use haul_append_log::{self as log, Position};

use crate::clock::Version;
use crate::damage::report::Damage;
use crate::error::Result;
use crate::format::{Head, Kind};
use crate::index::version_names::readable;
use crate::object::Etag;
use crate::recovery::replay::Replayer;

/// The maximum number of objects in damaged ranges that are named.
const DAMAGED_OBJECTS_MAX: usize = 10_000;

impl Replayer<'_> {
    /// Finds the objects in damaged ranges that only the checkpoint contains.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] if a run is damaged.
    pub(crate) fn find_damaged_objects(&mut self, ranges: &[(u32, u64, u64)]) -> Result<()> {
        let is_known =
            |(volume, from, _): &&(u32, u64, u64)| *from < self.covered_end(*volume).into();
        let ranges: Vec<_> = ranges.iter().filter(is_known).copied().collect();
        if ranges.is_empty() {
            return Ok(());
        }
        let is_hit = |at: Position| {
            let offset = u64::from(at.lsn.offset());
            let is_in = |(volume, from, to): &(u32, u64, u64)| {
                at.lsn.segment() == *volume && (*from..*to).contains(&offset)
            };
            at.lsn < self.applied && ranges.iter().any(is_in)
        };
        let mut found = Vec::new();
        self.index.keys.snapshot().scan(|bucket, key, entry| {
            if is_hit(entry.at) {
                found.push((entry.at, head_of(Kind::Object, bucket, key)));
            }
            found.len() < DAMAGED_OBJECTS_MAX
        })?;
        for (name, bucket) in &self.index.buckets {
            found.extend(
                bucket
                    .position
                    .filter(|at| is_hit(*at))
                    .map(|at| (at, head_of(Kind::BucketCreated, name, ""))),
            );
        }
        for (name, upload) in &self.index.uploads {
            let (bucket, key) = name.bucket_and_key();
            let mut head = head_of(Kind::UploadStarted, bucket, key);
            head.upload = name.id;
            found.extend(upload.at.filter(|at| is_hit(*at)).map(|at| (at, head.clone())));
            head.kind = Kind::Part;
            for (number, part) in upload.parts.iter().filter(|(_, part)| is_hit(part.at)) {
                head.part = *number;
                found.push((part.at, head.clone()));
            }
        }
        self.damaged_objects = found;
        Ok(())
    }

    /// Returns `true` if a needle determines the current state of an object, bucket or upload.
    fn determines_state(&self, head: &Head, at: Position) -> bool {
        let index = &self.index;
        match head.kind {
            // A newer object of the key would be at a later position.
            Kind::Tombstone => !matches!(
                index.keys.snapshot().get(&head.bucket, &head.key),
                Ok(Some(entry)) if entry.at.lsn > at.lsn
            ),
            Kind::BucketDeleted => !index.buckets.contains_key(head.bucket.as_str()),
            Kind::UploadEnded => true,
            _ => index.is_live(head, at),
        }
    }

    /// Returns a report for each object, bucket, upload and tombstone in a volume's damaged range
    /// that is still relevant.
    pub(crate) fn name(&self, volume: u32, damage: &log::Damage) -> Vec<Damage> {
        let is_in = |(at, head): &&(Position, Head)| {
            at.lsn.segment() == volume
                && (damage.offset..damage.end).contains(&at.lsn.offset().into())
                && self.determines_state(head, *at)
        };
        let named = |(at, head): &(Position, Head)| {
            let (bucket, key) = readable(&head.bucket, &head.key);
            Damage {
                bucket: Some(bucket),
                key: (!key.is_empty()).then_some(key),
                file: damage.file.clone(),
                offset: at.lsn.offset().into(),
                what: match head.is_tombstone() {
                    true => format!(
                        "{}; a deletion is recorded in this place, and remains known",
                        damage.what
                    ),
                    false => damage.what.clone(),
                },
            }
        };
        self.affected
            .iter()
            .filter(is_in)
            .chain(self.damaged_objects.iter().filter(is_in))
            .map(named)
            .collect()
    }
}

fn head_of(kind: Kind, bucket: &str, key: &str) -> Head {
    let etag = Etag { md5: [0; 16], parts: 0 };
    let (bucket, key, version) = (bucket.to_owned(), key.to_owned(), Version::default());
    let (files, blocks) = (Vec::new(), Box::default());
    Head {
        kind,
        version,
        bucket,
        key,
        bytes: 0,
        etag,
        part: 0,
        upload: 0,
        is_versioned: false,
        files,
        blocks,
    }
}
