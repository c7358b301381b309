//! The scrub: reads all data in the background at a limited rate, to detect damage early.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use haul_append_log::{self as log, Position, Replay, stored_bytes};
use haul_sync::mpsc;
use haul_sync::thread::JoinHandle;

use crate::big_files::file::BigReader;
use crate::counters::Counters;
use crate::damage::report::Damage;
use crate::error::{Error, Result};
use crate::format::FilePart;
use crate::inner::Inner;
use crate::verification::verify::name_damage;
use crate::volumes::volume_id;
use crate::worker::{Worker, spawn};

/// The minimum interval between two scrubs.
const EVERY: Duration = Duration::from_hours(24);

/// The length of each read from a big file.
const STEP_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Scrub {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scrub {
    /// Starts the thread, unless the options disable it.
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let bytes_per_second = inner.options.scrub_bytes_per_second;
        if bytes_per_second == 0 {
            return Ok(Self { stop: None, thread: None });
        }
        let (stop, stopped) = mpsc::channel();
        let thread = spawn(&inner.dir, "store-scrub", {
            let inner = Arc::clone(inner);
            let pace = Pace { bytes_per_second, bytes: 0, began: Instant::now(), stopped };
            move || run(&inner, pace)
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Worker for Scrub {
    /// Ends the thread at its next step.
    fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The rate limit of the scrub.
struct Pace {
    bytes_per_second: u64,
    bytes: u64,
    began: Instant,
    /// Disconnected when the store is closed.
    stopped: mpsc::Receiver<()>,
}

impl Pace {
    /// Waits until `bytes` more bytes may be read. Returns `false` if the store is being closed.
    fn wait_for(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        let due = Duration::from_secs_f64(self.bytes as f64 / self.bytes_per_second as f64);
        self.sleep(due.saturating_sub(self.began.elapsed()))
    }

    fn sleep(&self, duration: Duration) -> bool {
        self.stopped.recv_timeout(duration) == Err(mpsc::RecvTimeoutError::Timeout)
    }
}

fn run(inner: &Inner, mut pace: Pace) {
    loop {
        (pace.bytes, pace.began) = (0, Instant::now());
        if !scrub_volumes(inner, &mut pace) || !scrub_big_files(inner, &mut pace) {
            return;
        }
        Counters::count(&inner.counters.local().scrubs);
        if !pace.sleep(EVERY.saturating_sub(pace.began.elapsed())) {
            return;
        }
    }
}

/// A reader of a volume that counts records and applies the rate limit.
struct Reading<'a> {
    inner: &'a Inner,
    pace: &'a mut Pace,
    continues: bool,
}

impl Reading<'_> {
    fn count(&mut self, bytes: u64) {
        self.inner.counters.local().scrubbed_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.continues = self.continues && self.pace.wait_for(bytes);
    }
}

impl Replay for Reading<'_> {
    fn record(&mut self, at: Position, _payload: &[u8]) {
        self.count(stored_bytes(at).into());
    }

    fn wants_more(&self) -> bool {
        self.continues
    }
}

/// Reads all volumes. Returns `false` if the store is being closed.
fn scrub_volumes(inner: &Inner, pace: &mut Pace) -> bool {
    for segment in inner.volumes.log.segments().into_iter().filter(|segment| segment.is_local) {
        let mut reading = Reading { inner, pace, continues: true };
        let damage = match inner.volumes.log.scan_direct(segment.number, &mut reading) {
            Ok(damage) => damage,
            Err(log::Error::Disk(error)) if !error.is_not_found() => vec![log::Damage {
                offset: error.offset.unwrap_or(0),
                end: error.offset.unwrap_or(0),
                what: error.source.to_string(),
                file: error.path,
            }],
            // The volume was removed in the meantime.
            Err(_) => continue,
        };
        if !reading.continues {
            return false;
        }
        note_volume_damage(inner, &volume_id(&segment), damage);
    }
    true
}

fn note_volume_damage(
    inner: &Inner,
    volume: &crate::volume_index::format::VolumeId,
    damage: Vec<log::Damage>,
) {
    if damage.is_empty() {
        return;
    }
    let mut named = name_damage(inner, volume, &damage);
    named.extend(name_objects(inner, volume.number, &damage));
    for place in damage {
        let is_named = named.iter().any(|named| {
            named.file == place.file && (place.offset..place.end).contains(&named.offset)
        });
        if !is_named {
            inner.volumes.damage.add(place.into());
        }
    }
    for damage in named {
        inner.volumes.damage.add(damage);
    }
    // Compaction does not remove the volume, because its content may be recoverable.
    inner.maintenance.volume_states.lock().damaged.insert(volume.number);
}

/// Returns a report for each object whose needle is in a damaged range of a volume.
fn name_objects(inner: &Inner, volume: u32, found: &[log::Damage]) -> Vec<Damage> {
    let mut named = Vec::new();
    let keys = inner.keyspace.index.read().keys.snapshot();
    let scanned = keys.scan(|bucket, key, entry| {
        let offset = u64::from(entry.at.lsn.offset());
        let is_hit = |damage: &&log::Damage| (damage.offset..damage.end).contains(&offset);
        if entry.at.lsn.segment() == volume
            && let Some(hit) = found.iter().find(is_hit)
        {
            let (bucket, key) = (Some(bucket.to_owned()), Some(key.to_owned()));
            let (file, what) = (hit.file.clone(), hit.what.clone());
            named.push(Damage { bucket, key, file, offset, what });
        }
        true
    });
    if let Err(Error::Damaged { file, offset, what }) = scanned {
        named.push(Damage { bucket: None, key: None, file, offset, what });
    }
    named
}

/// Reads all big objects' files. Returns `false` if the store is being closed.
fn scrub_big_files(inner: &Inner, pace: &mut Pace) -> bool {
    let files: Vec<FilePart> = inner.keyspace.index.read().files.parts().collect();
    for part in files {
        let mut reading = Reading { inner, pace, continues: true };
        let outcome = read_big_file(inner, part, &mut reading);
        if !reading.continues {
            return false;
        }
        let is_used = inner.keyspace.index.read().files.contains(part.id);
        if let (Err(Error::Damaged { file, offset, what }), true) = (outcome, is_used) {
            let (bucket, key) = object_of_file(inner, part.id).unzip();
            inner.volumes.damage.add(Damage { bucket, key, file, offset, what });
        }
    }
    true
}

fn read_big_file(inner: &Inner, part: FilePart, reading: &mut Reading<'_>) -> Result<()> {
    let reader = BigReader::open(&inner.objects, part)?;
    if !reader.is_local() {
        return Ok(());
    }
    let mut offset = 0;
    while offset < part.bytes && reading.continues {
        let read = reader.read(offset, STEP_BYTES)?.len() as u64;
        offset += read;
        reading.count(read);
        if read == 0 {
            break;
        }
    }
    Ok(())
}

fn object_of_file(inner: &Inner, id: u128) -> Option<(String, String)> {
    let keys = inner.keyspace.index.read().keys.snapshot();
    let mut found = None;
    let scanned = keys.scan(|bucket, key, entry| {
        if entry.files.iter().any(|file| file.id == id) {
            found = Some((bucket.to_owned(), key.to_owned()));
        }
        found.is_none()
    });
    scanned.ok().and(found)
}
