//! Reading everything back.

use haul_append_log as log;
use haul_disk::Op;

use crate::error::{Error, Result};
use crate::index::Entry;
use crate::inner::Inner;
use crate::recover::Damage;
use crate::store::Store;

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
        self.verify_volumes(&mut verified)?;
        Ok(verified)
    }

    /// Adds the damage in the volumes that no object has told of.
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
                        what: error.source.to_string(),
                    }]
                }
                scanned => scanned?,
            };
            let is_told = |damage: &Damage, told: &[Damage]| {
                told.iter().any(|told| told.file == damage.file && told.offset == damage.offset)
            };
            for damage in damage.into_iter().map(Damage::from) {
                if !is_told(&damage, &verified.damage) {
                    verified.damage.push(damage);
                }
            }
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
    fn objects_by_place(&self) -> Vec<(String, String, Entry)> {
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
