//! Verification of all data on request.

use std::collections::BTreeSet;

use haul_append_log as log;
use haul_disk::Op;

use crate::damage::report::Damage;
use crate::error::{Error, Result};
use crate::format::{Kind, needles};
use crate::index::version_names::{event_queue, readable};
use crate::inner::Inner;
use crate::store::Store;
use crate::volume_index;
use crate::volume_index::format::{IndexedNeedle, VolumeId};
use crate::volumes::volume_id;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerificationReport {
    /// The number of objects read.
    pub objects: u64,
    /// The total length of these objects.
    pub bytes: u64,
    /// The damage found.
    pub damage: Vec<Damage>,
}

impl VerificationReport {
    /// Adds damage with a name, unless it is known.
    fn add(&mut self, damage: Damage) {
        let is_same = |known: &Damage| {
            (&known.bucket, &known.key) == (&damage.bucket, &damage.key)
                && (&known.file, known.offset) == (&damage.file, damage.offset)
        };
        if !self.damage.iter().any(is_same) {
            self.damage.push(damage);
        }
    }

    /// Adds a report without a name, unless a report with a name covers it.
    fn add_unnamed(&mut self, damage: Damage) {
        let is_there = |known: &Damage| known.file == damage.file && known.offset == damage.offset;
        if !self.damage.iter().any(is_there) {
            self.damage.push(damage);
        }
    }
}

impl Store {
    /// Reads and verifies every object, in the order of their positions in the volumes, while the
    /// store continues to work. Then reads each volume completely, because a damaged range without
    /// known objects may have contained one. `progress` receives the number of objects and bytes
    /// read so far.
    ///
    /// # Errors
    /// A failed system call. Damage is not an error, but part of the result.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerificationReport> {
        let mut verified = VerificationReport::default();
        let (sound, in_volumes) = self.verify_volumes(&mut verified, progress)?;
        self.verify_keys(&sound, &mut verified, progress)?;
        verified.damage.extend(self.inner.volumes.damage.hidden());
        // Damage that cannot be found again: missing volumes, hidden places, the manifest.
        for damage in self.inner.volumes.damage.reports() {
            match damage.key.is_some() {
                true => verified.add(damage),
                false => verified.add_unnamed(damage),
            }
        }
        for damage in in_volumes {
            match damage.key.is_some() || damage.bucket.is_some() {
                true => verified.add(damage),
                false => verified.add_unnamed(damage),
            }
        }
        Ok(verified)
    }

    /// Reads all volumes in log order. Counts the objects in the needles of intact volumes, and
    /// returns these volumes and the damage in the others.
    fn verify_volumes(
        &self,
        verified: &mut VerificationReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(BTreeSet<u32>, Vec<Damage>)> {
        let inner = &self.inner;
        let (mut sound, mut found) = (BTreeSet::new(), Vec::new());
        for segment in inner.volumes.log.segments() {
            let (mut objects, mut bytes) = (verified.objects, verified.bytes);
            let scanned = inner.volumes.log.scan(segment.number, &mut |at, record| {
                let index = inner.keyspace.index.read();
                for (head, _) in needles(record).flatten() {
                    let is_object = head.kind == Kind::Object
                        && head.files.is_empty()
                        && event_queue(&head.bucket).is_none();
                    if is_object && index.is_live(&head, at) {
                        objects += 1;
                        bytes += head.bytes;
                    }
                }
                drop(index);
                progress(objects, bytes);
            });
            let damage = match scanned {
                // The volume was compacted in the meantime.
                Err(log::Error::Invalid(_)) => continue,
                Err(log::Error::Disk(error)) if error.is_not_found() => continue,
                Err(log::Error::Disk(error)) if error.op == Op::Read => {
                    vec![log::Damage {
                        file: error.path,
                        offset: error.offset.unwrap_or(0),
                        end: error.offset.unwrap_or(0),
                        what: error.source.to_string(),
                    }]
                }
                scanned => scanned?,
            };
            if damage.is_empty() {
                sound.insert(segment.number);
                (verified.objects, verified.bytes) = (objects, bytes);
                continue;
            }
            found.extend(name_damage(inner, &volume_id(&segment), &damage));
            found.extend(damage.into_iter().map(Damage::from));
        }
        Ok((sound, found))
    }

    /// Reads the objects that reading the volumes does not verify: objects in damaged or missing
    /// volumes, objects in their own files, and objects that the index does not locate.
    fn verify_keys(
        &self,
        sound: &BTreeSet<u32>,
        verified: &mut VerificationReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let inner = &self.inner;
        let keys = inner.keyspace.index.read().keys.snapshot();
        let mut outcome = Ok(());
        let scanned = keys.scan(|bucket, key, entry| {
            let was_counted = entry.files.is_empty() && sound.contains(&entry.at.lsn.segment());
            if !was_counted {
                verified.objects += 1;
                verified.bytes += entry.bytes;
            }
            if !was_counted || !inner.keyspace.index.read().is_object_at(bucket, key, entry.at) {
                outcome = self.verify_key(bucket, key, verified);
                progress(verified.objects, verified.bytes);
            }
            outcome.is_ok()
        });
        match scanned.map_err(|error| inner.note_index_damage(error)) {
            Err(Error::Damaged { file, offset, what }) => {
                verified.damage.push(Damage::in_file(file, offset, what));
            }
            scanned => scanned?,
        }
        outcome
    }

    fn verify_key(&self, bucket: &str, key: &str, verified: &mut VerificationReport) -> Result<()> {
        let (bucket_name, key_name) = readable(bucket, key);
        let (bucket_name, key_name) = (Some(bucket_name), Some(key_name));
        match self.verify_object(bucket, key) {
            // A missing object was deleted in the meantime.
            Ok(()) | Err(Error::NoSuchKey { .. } | Error::NoSuchBucket { .. }) => {}
            Err(Error::Damaged { file, offset, what }) => {
                verified.add(Damage { bucket: bucket_name, key: key_name, file, offset, what });
            }
            // An unreadable sector is damage, too.
            Err(Error::Disk(error)) if error.op == Op::Read => {
                let (offset, what) = (error.offset.unwrap_or(0), error.source.to_string());
                let file = error.path;
                verified.add(Damage { bucket: bucket_name, key: key_name, file, offset, what });
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn verify_object(&self, bucket: &str, key: &str) -> Result<()> {
        const STEP_BYTES: usize = 1 << 20;
        let object = self.get_stored(bucket, key)?;
        let mut offset = 0;
        while offset < object.info.bytes {
            let read = object.read(offset, STEP_BYTES)?;
            if read.is_empty() {
                let file = self.inner.dir.clone();
                let what = "the files of the object are shorter than the object".to_owned();
                return Err(Error::Damaged { file, offset, what });
            }
            offset += read.len() as u64;
        }
        Ok(())
    }
}

/// Returns a report for each bucket, upload and tombstone that a volume's index lists in the
/// volume's damaged ranges. Objects are not included, because they are read individually.
pub(crate) fn name_damage(inner: &Inner, volume: &VolumeId, found: &[log::Damage]) -> Vec<Damage> {
    let read = volume_index::read(&*inner.volumes.disk, volume.number, Some(volume.nonce));
    let Some(volume_index) = read else { return Vec::new() };
    let index = inner.keyspace.index.read();
    let mut named = Vec::new();
    for IndexedNeedle { at, head, .. } in volume_index.needles {
        let offset = u64::from(at.lsn.offset());
        let hit = found.iter().find(|damage| (damage.offset..damage.end).contains(&offset));
        let Some(hit) = hit else { continue };
        if head.kind == Kind::Object || !index.is_live(&head, at) && !head.is_tombstone() {
            continue;
        }
        let (bucket, key) = readable(&head.bucket, &head.key);
        let key = (!key.is_empty()).then_some(key);
        let (file, what) = (hit.file.clone(), hit.what.clone());
        named.push(Damage { bucket: Some(bucket), key, file, offset, what });
    }
    named
}
