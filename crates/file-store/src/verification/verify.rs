//! Reading everything back.

use haul_append_log as log;
use haul_disk::Op;

use crate::error::{Error, Result};
use crate::format::Kind;
use crate::index::Entry;
use crate::inner::Inner;
use crate::recovery::damage::Damage;
use crate::recovery::recover::volume_id;
use crate::store::Store;
use crate::volume_index;
use crate::volume_index::format::VolumeId;

/// What reading everything back found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Objects read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What did not check out.
    pub damage: Vec<Damage>,
}

impl Verified {
    /// Adds damage to something that has a name, unless it is known.
    fn add(&mut self, damage: Damage) {
        let is_same = |known: &Damage| {
            (&known.bucket, &known.key) == (&damage.bucket, &damage.key)
                && (&known.file, known.offset) == (&damage.file, damage.offset)
        };
        if !self.damage.iter().any(is_same) {
            self.damage.push(damage);
        }
    }

    /// Adds a damaged place, unless something named there is known.
    fn add_unnamed(&mut self, damage: Damage) {
        let is_there = |known: &Damage| known.file == damage.file && known.offset == damage.offset;
        if !self.damage.iter().any(is_there) {
            self.damage.push(damage);
        }
    }
}

impl Store {
    /// Reads every object back and checks it, in the order of their places in the volumes, while
    /// the store goes on working, then each volume from end to end, since what no object is in
    /// any more may be what one was lost from. `progress` hears how many objects and bytes are
    /// done.
    ///
    /// # Errors
    /// When the kernel refuses to read for another reason than damage; damage is in the result.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verified> {
        let mut verified = Verified::default();
        for (bucket, key, entry) in self.inner.objects_by_place() {
            match self.verify_object(&bucket, &key) {
                // It was deleted since.
                Err(Error::NoSuchKey { .. } | Error::NoSuchBucket { .. }) => continue,
                Err(Error::Damaged { file, offset, what }) => {
                    let (bucket, key) = (Some(bucket), Some(key));
                    verified.damage.push(Damage { bucket, key, file, offset, what });
                }
                // A medium that cannot return a sector is damaged, too.
                Err(Error::Disk(error)) if error.op == Op::Read => {
                    let (bucket, key) = (Some(bucket), Some(key));
                    let (offset, what) = (error.offset.unwrap_or(0), error.source.to_string());
                    verified.damage.push(Damage { bucket, key, file: error.path, offset, what });
                }
                outcome => outcome?,
            }
            verified.objects += 1;
            verified.bytes += entry.bytes;
            progress(verified.objects, verified.bytes);
        }
        verified.damage.extend(self.inner.damage.hidden());
        // What cannot be read again: volumes that are missing, what they hid, the manifest.
        for damage in self.inner.damage.places() {
            match damage.key.is_some() {
                true => verified.add(damage),
                false => verified.add_unnamed(damage),
            }
        }
        self.verify_volumes(&mut verified)?;
        Ok(verified)
    }

    /// Adds the damage in the volumes that no object has met, with the names of what else is
    /// recorded there.
    fn verify_volumes(&self, verified: &mut Verified) -> Result<()> {
        let inner = &self.inner;
        for segment in inner.log.segments() {
            let scanned = inner.log.scan(segment.number, &mut |_, _| {});
            let damage = match scanned {
                // It was compacted since.
                Err(log::Error::Invalid(_)) => continue,
                Err(log::Error::Disk(error)) if error.is_not_found() => continue,
                // What objects it holds have been read one by one.
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
                continue;
            }
            let named = inner.name_damage(&volume_id(&segment), &damage);
            named.into_iter().for_each(|damage| verified.add(damage));
            damage.into_iter().for_each(|damage| verified.add_unnamed(damage.into()));
        }
        Ok(())
    }

    fn verify_object(&self, bucket: &str, key: &str) -> Result<()> {
        const STEP_BYTES: usize = 1 << 20;
        let object = self.get(bucket, key)?;
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

impl Inner {
    /// Names what damaged ranges of a volume held beside objects, which are read one by one: what
    /// its index says of buckets, uploads and deletions there.
    pub(crate) fn name_damage(&self, volume: &VolumeId, found: &[log::Damage]) -> Vec<Damage> {
        let read = volume_index::read(&*self.volumes, volume.number, Some(volume.nonce));
        let Some(volume_index) = read else { return Vec::new() };
        let index = self.index.read();
        let mut named = Vec::new();
        for (at, head) in volume_index.needles {
            let offset = u64::from(at.lsn.offset());
            let hit = found.iter().find(|damage| (damage.offset..damage.end).contains(&offset));
            let Some(hit) = hit else { continue };
            if head.kind == Kind::Object || !index.matters(&head, at) {
                continue;
            }
            let key = (!head.key.is_empty()).then_some(head.key);
            let (file, what) = (hit.file.clone(), hit.what.clone());
            named.push(Damage { bucket: Some(head.bucket), key, file, offset, what });
        }
        named
    }

    pub(crate) fn objects_by_place(&self) -> Vec<(String, String, Entry)> {
        let index = self.index.read();
        let mut objects: Vec<_> = index
            .buckets
            .iter()
            .flat_map(|(name, bucket)| {
                let objects = bucket.objects.iter();
                objects.map(move |(key, entry)| (name.to_string(), key.to_string(), entry.clone()))
            })
            .collect();
        drop(index);
        objects.sort_unstable_by_key(|(_, _, entry)| entry.at.lsn);
        objects
    }
}
