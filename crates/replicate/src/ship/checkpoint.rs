//! Ships the index checkpoint.

use std::time::Instant;

use haul_append_log::Lsn;

use crate::error::Result;
use crate::manifest::IndexFile;
use crate::manifest::names;
use crate::ship::round::Shipper;
use crate::ship::upload::upload;
use crate::source::Source;

impl<S: Source> Shipper<S> {
    /// Ships the current checkpoint if the draft has an older one, and it is due or must be
    /// shipped. Files that the draft has are not sent again.
    pub(super) fn ship_checkpoint(&mut self, must: bool) -> Result<()> {
        let due = self.options.checkpoint_every;
        let is_due = self.checkpoint_shipped.is_none_or(|shipped| shipped.elapsed() >= due);
        let lsn = self.source.checkpoint_lsn();
        if !(must || is_due) || lsn.is_none_or(|lsn| lsn <= self.draft.checkpoint) {
            return Ok(());
        }
        let Some(checkpoint) = self.source.checkpoint()? else { return Ok(()) };
        let mut index = Vec::with_capacity(checkpoint.files.len());
        for (name, bytes, file) in checkpoint.files {
            let known = self.draft.index.iter().find(|known| {
                // The catalog is the only file that is replaced under its name.
                known.name == name && known.bytes == bytes && !name.ends_with("CATALOG")
            });
            if let Some(known) = known {
                index.push(known.clone());
                continue;
            }
            // The checksum is part of the name, so that the catalogs have different names.
            let checksum = checksum_of(&*file, bytes)?;
            let stored = IndexFile { name, bytes, epoch: self.draft.epoch, checksum };
            upload(&self.remote, &names::index_file(&stored), &*file, bytes)?;
            index.push(stored);
        }
        let old = std::mem::replace(&mut self.draft.index, index);
        self.discard_index(&old);
        self.draft.checkpoint = checkpoint.lsn;
        self.checkpoint_shipped = Some(Instant::now());
        Ok(())
    }

    /// Removes an unusable checkpoint from the draft.
    pub(super) fn drop_checkpoint(&mut self) {
        let old = std::mem::take(&mut self.draft.index);
        self.discard_index(&old);
        self.draft.checkpoint = Lsn::default();
    }

    fn discard_index(&mut self, old: &[IndexFile]) {
        let is_unused = |file: &&IndexFile| !self.draft.index.contains(file);
        self.garbage.extend(old.iter().filter(is_unused).map(names::index_file));
    }
}

fn checksum_of(file: &dyn haul_disk::File, bytes: u64) -> Result<u32> {
    let mut checksum = haul_crc::crc32c(b"");
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let wanted = usize::try_from(bytes - at).unwrap_or(buffer.len()).min(buffer.len());
        let read = haul_disk::read_full(file, &mut buffer[..wanted], at)?;
        if read == 0 {
            break;
        }
        checksum = haul_crc::crc32c_append(checksum, &buffer[..read]);
        at += read as u64;
    }
    Ok(checksum)
}
