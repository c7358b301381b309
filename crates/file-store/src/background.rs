//! What is done beside the requests: sealed volumes get an index, dead ones are compacted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use haul_append_log::SegmentInfo;
use haul_disk::{Durability, Open, write_full};

use crate::compact::BACKGROUND_DEAD_PERCENT_MIN;
use crate::error::{Error, Result};
use crate::format::{IndexEncoder, needles};
use crate::inner::Inner;
use crate::names;

/// The background thread of a store.
#[derive(Debug)]
pub(crate) struct Background {
    signals: Option<SyncSender<()>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        // One signal that waits is enough for all.
        let (signals, received) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("store-background".to_owned()).spawn({
            let (inner, stop) = (Arc::clone(inner), Arc::clone(&stop));
            move || run(&inner, &stop, &received)
        });
        let thread = thread.map_err(|source| {
            Error::Disk(haul_disk::Error::new(haul_disk::Op::Open, &inner.dir, source))
        })?;
        Ok(Self { signals: Some(signals), stop, thread: Some(thread) })
    }

    /// A volume was sealed, or more of one is dead.
    pub(crate) fn wake(&self) {
        if let Some(signals) = &self.signals {
            // Full: it has been told already.
            signals.try_send(()).ok();
        }
    }

    /// Ends the thread at its next step.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.signals = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Looks after what is there already, then again whenever it is woken.
///
/// All of it can be done again later, and is: a failure here harms no object, and what must not
/// fail (the log) tells everybody by itself.
fn run(inner: &Inner, stop: &AtomicBool, signals: &Receiver<()>) {
    loop {
        drop(inner.index_sealed_volumes(stop));
        drop(inner.compact(BACKGROUND_DEAD_PERCENT_MIN, stop));
        if signals.recv().is_err() {
            return;
        }
    }
}

impl Inner {
    /// Writes the indexes that are missing. One whose volume is missing stays, to tell so.
    fn index_sealed_volumes(&self, stop: &AtomicBool) -> Result<()> {
        let mut upkeep = self.upkeep.lock();
        let names = self.volumes.list("")?;
        let present: BTreeSet<u32> =
            names.iter().filter_map(|name| names::parse_index(name)).collect();
        let sealed = self.sealed_volumes();
        for volume in sealed.iter().filter(|volume| !present.contains(&volume.number)) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !upkeep.damaged.contains(&volume.number) && !self.write_index(*volume)? {
                upkeep.damaged.insert(volume.number);
            }
        }
        Ok(())
    }

    /// Writes the index of a sealed volume. One with damage gets none, so that it is read itself
    /// when the store is opened, and its damage reported: then the answer is `false`.
    ///
    /// It is derived data: one that is not whole is not used, so it is synced only before it
    /// gets its name, and its name may be lost.
    fn write_index(&self, volume: SegmentInfo) -> Result<bool> {
        let mut index = IndexEncoder::new(volume.number, volume.nonce);
        let mut is_whole = true;
        let scanned = self.log.scan(volume.number, &mut |at, record| {
            for needle in needles(record) {
                match needle {
                    Ok((head, _)) => index.push(at, &head),
                    Err(_) => is_whole = false,
                }
            }
        });
        if !is_whole || !scanned.is_ok_and(|damage| damage.is_empty()) {
            return Ok(false);
        }
        let name = names::index(volume.number);
        let unfinished = names::unfinished(&name);
        let written = self.write_synced(&unfinished, &index.finish());
        if written.is_err() {
            // A full disk is glad to have the space now.
            drop(self.volumes.remove(&unfinished));
        }
        written?;
        self.volumes.rename(&unfinished, &name)?;
        Ok(true)
    }

    fn write_synced(&self, name: &str, bytes: &[u8]) -> haul_disk::Result<()> {
        // One that was not finished may be in the way.
        drop(self.volumes.remove(name));
        let file = self.volumes.create(name, Open::default())?;
        write_full(&*file, bytes, 0)?;
        file.sync(Durability::Data)
    }
}
