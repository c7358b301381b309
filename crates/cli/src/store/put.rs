//! `haul store put`: stores a file or stdin as an object.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use haul_file_store::{Attributes, Precondition};
use haul_store_pool::Pool;
use haul_transfer::{MTIME_ATTRIBUTE, Mtime, PIECE_BYTES};

use super::ls::object_json;
use crate::args::PutArgs;
use crate::output::print_line;
use crate::report::{OrFail, Result};

pub(super) fn run(store: &Pool, args: &PutArgs) -> Result {
    let cannot = || format!("cannot store {}", args.to);
    // This call fails before the input is read if the bucket does not exist.
    store.bucket(&args.to.bucket).or_fail(cannot)?;
    let mut input = open(&args.file)?;
    let mut writer =
        store.object_writer(&args.to.bucket, &args.to.key, input.bytes_expected).or_fail(cannot)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match input.bytes.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(error).or_fail(|| format!("cannot read {}", args.file.display()));
            }
        };
        writer.write(&piece[..read]).or_fail(cannot)?;
    }
    let written = writer.finish().or_fail(cannot)?;
    let mut attributes = Attributes::new();
    if let Some(modified) = input.modified {
        attributes.set(MTIME_ATTRIBUTE, modified.to_string());
    }
    let (bucket, key) = (&args.to.bucket, &args.to.key);
    let stored = store.put_written(bucket, key, written, &attributes, &Precondition::None);
    let info = stored.or_fail(cannot)?;
    if args.json { print_line(object_json(bucket, &info)) } else { Ok(()) }
}

/// The content to store. Length and modification time are known only for regular files.
struct Input {
    bytes: Box<dyn Read>,
    bytes_expected: Option<u64>,
    modified: Option<Mtime>,
}

fn open(path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let bytes = Box::new(io::stdin().lock());
        return Ok(Input { bytes, bytes_expected: None, modified: None });
    }
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).or_not_start(cannot)?;
    let status = file.metadata().or_not_start(cannot)?;
    let (mut bytes_expected, mut modified) = (None, None);
    if status.is_file() {
        bytes_expected = Some(status.len());
        modified = Some(Mtime::from(&status));
    }
    Ok(Input { bytes: Box::new(file), bytes_expected, modified })
}
