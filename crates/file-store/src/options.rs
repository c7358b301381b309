//! The choices a store leaves to its owner.

use crate::error::{Error, Result};

/// How a store behaves. The default suits one machine with one disk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: objects of at least this many bytes are streamed into files of their own;
    /// smaller ones go into volumes and are read back with one read. 64 KiB to 16 MiB; 4 MiB.
    /// Raising it saves files and costs memory: a small object is held whole while it is written
    /// or read.
    pub big_object_bytes: u64,
    /// Performance: the size of a volume. 4 MiB to 2 GiB, at least four times
    /// `big_object_bytes`; 128 MiB. Raising it makes recovery after a crash read more.
    pub volume_bytes: u64,
    /// Behaviour: what other processes are told about the holder of the store's lock.
    pub holder: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            big_object_bytes: 4 << 20,
            volume_bytes: 128 << 20,
            holder: format!("process {}", std::process::id()),
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let complain = |what: &str| Err(Error::Invalid { what: what.to_owned() });
        if !(64 << 10..=16 << 20).contains(&self.big_object_bytes) {
            return complain("big_object_bytes must lie between 64 KiB and 16 MiB");
        }
        if !(4 << 20..=2 << 30).contains(&self.volume_bytes)
            || self.volume_bytes < 4 * self.big_object_bytes
        {
            return complain(
                "volume_bytes must lie between 4 MiB and 2 GiB, and be four times big_object_bytes",
            );
        }
        Ok(())
    }
}
