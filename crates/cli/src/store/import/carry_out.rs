//! Walks the plan: several threads read files and store them, and share the syncs of the store.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_file_store::{Attributes, Error, Precondition, Result as StoreResult, Store, Written};

use super::plan::{Plan, Planned};
use super::source::{Reading, Source};
use crate::progress::{Amount, Done, Part, Progress};
use crate::report::{Failure, Result, chain, say};
use crate::signals::Stop;
use crate::store::content::PIECE_BYTES;
use crate::store::mtime::{self, Mtime};
use crate::store::workers::{self, Queue};

/// What to carry out, and how.
pub(super) struct Work<'a> {
    pub(super) store: &'a Store,
    pub(super) bucket: &'a str,
    pub(super) source: &'a Source,
    pub(super) plan: &'a Plan,
    pub(super) big_object_bytes: u64,
    pub(super) skip_existing: bool,
    pub(super) one_reader: bool,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) stored: Done,
    /// Files that were stored already.
    pub(super) same: u64,
    /// Files that could not be read.
    pub(super) failed: u64,
}

impl Outcome {
    /// The files that were dealt with in whatever way.
    pub(super) fn taken(&self) -> u64 {
        self.stored.amount.things + self.same + self.failed
    }
}

/// Why a file was not stored.
enum Trouble {
    /// The file is to blame: the others can still be stored.
    File(Box<dyn std::error::Error + Send + Sync>),
    /// The store is to blame.
    Store(Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::File(Box::new(error))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidKey { .. } | Error::Invalid { .. } => Self::File(Box::new(error)),
            other => Self::Store(other),
        }
    }
}

/// A file that was read.
enum Content<'a> {
    Small(Vec<u8>),
    /// Its bytes were counted as they were read.
    Big(Written, Part<'a>),
}

/// What was read and the time of the file; nothing of a file that is stored already.
type Read<'a> = std::result::Result<Option<(Content<'a>, Mtime)>, Trouble>;

struct Carrying<'a> {
    work: &'a Work<'a>,
    queue: Queue<'a>,
    /// Held while reading where one file is to be read after another.
    turn: Mutex<()>,
    progress: Progress,
    same: AtomicU64,
    failed: AtomicU64,
}

/// Stores everything in the plan with `jobs` threads. The store's own failures end it.
pub(super) fn carry_out(work: &Work<'_>, jobs: usize, stop: &Stop) -> Result<Outcome> {
    let all = Amount { things: work.plan.files.len() as u64, bytes: work.plan.bytes };
    let carrying = Carrying {
        work,
        queue: Queue::new(work.plan.files.len(), stop),
        turn: Mutex::new(()),
        progress: Progress::new("file", all),
        same: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    };
    let result = workers::run(jobs, &carrying.queue, || carrying.run());
    let outcome = Outcome {
        stored: carrying.progress.finish(),
        same: carrying.same.into_inner(),
        failed: carrying.failed.into_inner(),
    };
    // Also before a failure: this much is stored.
    say(&format!("imported {}", outcome.stored));
    result.map(|()| outcome)
}

impl Carrying<'_> {
    fn run(&self) -> Result {
        while let Some((file, read)) = self.next() {
            let kept = read.and_then(|content| match content {
                Some((content, modified)) => Ok(self.store(file, content, modified)?),
                None => {
                    self.same.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            });
            match kept {
                Ok(()) => {}
                Err(Trouble::Store(error)) => {
                    return Err(Failure::new(self.cannot(file)).because(error));
                }
                Err(Trouble::File(error)) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    self.progress.say(&chain(&self.cannot(file), Some(&*error)));
                }
            }
        }
        Ok(())
    }

    fn cannot(&self, file: &Planned) -> String {
        let path = self.work.source.path().join(self.work.plan.path(file));
        format!("cannot import {}", path.display())
    }

    /// Reads the next file. Whose turn it is takes the next one, so that one reader keeps to the
    /// order of the plan while the others store what they have read.
    fn next(&self) -> Option<(&Planned, Read<'_>)> {
        let _turn: Option<MutexGuard<'_, ()>> =
            self.work.one_reader.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let file = &self.work.plan.files[self.queue.take()?];
        Some((file, self.read(file)))
    }

    fn read(&self, file: &Planned) -> Read<'_> {
        if self.work.skip_existing && self.is_stored(file)? {
            return Ok(None);
        }
        let reading = self.work.source.read(self.work.plan.path(file))?;
        let modified = Mtime::from(reading.status());
        let content = if reading.status().len() < self.work.big_object_bytes {
            Content::Small(reading.whole()?)
        } else {
            self.stream(reading)?
        };
        Ok(Some((content, modified)))
    }

    /// Whether the store has an object of the same size and time. Times are only compared, which
    /// costs a read, when the sizes, which are in memory, are the same.
    fn is_stored(&self, file: &Planned) -> std::result::Result<bool, Trouble> {
        let Work { store, bucket, .. } = self.work;
        let object = match store.stat(bucket, &file.key) {
            Ok(info) if info.bytes == file.bytes => store.head(bucket, &file.key),
            Ok(_) => return Ok(false),
            Err(error) => Err(error),
        };
        let object = match object {
            // To store it again is the way to repair it.
            Err(Error::NoSuchKey { .. } | Error::Damaged { .. }) => return Ok(false),
            other => other?,
        };
        Ok(Mtime::kept(&object.attributes) == Some(file.modified))
    }

    fn stream(&self, mut reading: Reading) -> std::result::Result<Content<'_>, Trouble> {
        let mut part = self.progress.part();
        let mut writer = self.work.store.object_writer(Some(reading.status().len()))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match reading.some(&mut piece)? {
                0 => break,
                read => {
                    writer.write(&piece[..read])?;
                    part.more(read);
                }
            }
        }
        reading.finish(writer.bytes())?;
        Ok(Content::Big(writer.finish()?, part))
    }

    fn store(&self, file: &Planned, content: Content<'_>, modified: Mtime) -> StoreResult<()> {
        let Work { store, bucket, .. } = self.work;
        let mut attributes = Attributes::new();
        attributes.set(mtime::ATTRIBUTE, modified.to_string());
        let (key, always) = (&file.key, Precondition::None);
        match content {
            Content::Small(bytes) => {
                store.put(bucket, key, &bytes, &attributes, &always)?;
                self.progress.add(bytes.len() as u64);
            }
            Content::Big(written, part) => {
                store.put_written(bucket, key, written, &attributes, &always)?;
                part.finish();
            }
        }
        Ok(())
    }
}
