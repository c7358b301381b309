//! Pages of the keys under which anything is stored: a current object, older versions, delete
//! markers, or uploads.

use haul_sync::ShardedRwLock;

use crate::error::Result;
use crate::index::Index;
use crate::index::runs::source::Source;
use crate::index::uploads::next_key;
use crate::index::version_rows::{Position, Sources};
use crate::object::ListVersionsRequest;

/// The bytes that a listing reads ahead in a run at each of its two positions.
const READAHEAD_BYTES: usize = 64 << 10;

/// The number of times that a listing reads the next key without the index lock.
const UNLOCKED_READS: usize = 4;

/// The versions of a key that are read one by one before the listing seeks the next key.
const VERSIONS_READ_MAX: usize = 16;

/// Returns the first `limit` keys after `after` in a bucket under which anything is stored, in
/// order. A key under which something is stored all the time is listed, even while other threads
/// change it.
///
/// What is stored under a key is in three places, which are not read at once, and a change may move
/// it from one to another. If the index changes meanwhile, they are read again, and finally under
/// the index lock.
pub(crate) fn stored_keys(
    index: &ShardedRwLock<Index>,
    bucket: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>> {
    let (mut keys, mut attempts) = (Vec::new(), 0);
    let mut last = after.unwrap_or_default().to_owned();
    while keys.len() < limit {
        let locked = index.read();
        let (changes, snapshot) = (locked.keys.changes(), locked.keys.snapshot());
        let locked = (attempts == UNLOCKED_READS).then_some(locked);
        let [mut current, mut older] = [(); 2].map(|()| snapshot.merged(READAHEAD_BYTES));
        let mut sources = Sources::new(bucket, &mut current, &mut older);
        seek_after(&mut sources, &last)?;
        attempts += 1;
        while keys.len() < limit {
            let object = sources.next_key()?;
            let upload = match &locked {
                Some(index) => next_key(&index.uploads, bucket, &last).map(str::to_owned),
                None => {
                    let index = index.read();
                    if index.keys.changes() != changes {
                        break;
                    }
                    next_key(&index.uploads, bucket, &last).map(str::to_owned)
                }
            };
            let Some(key) = object.iter().chain(&upload).min().cloned() else { return Ok(keys) };
            if object.as_ref() == Some(&key) {
                pass(&mut sources, &key)?;
            }
            last.clone_from(&key);
            keys.push(key);
            attempts = 0;
            if locked.is_some() {
                break;
            }
        }
    }
    Ok(keys)
}

fn seek_after<S: Source>(sources: &mut Sources<'_, S>, key: &str) -> Result<()> {
    let position = Position::AfterKey(key.to_owned());
    sources.seek(&position, &ListVersionsRequest::default()).map(drop)
}

/// Moves past the current object and the older versions of the next key.
fn pass<S: Source>(sources: &mut Sources<'_, S>, key: &str) -> Result<()> {
    sources.take_current(key)?;
    for _ in 0..VERSIONS_READ_MAX {
        if sources.take_older(key)?.is_none() {
            return Ok(());
        }
    }
    seek_after(sources, key)
}
