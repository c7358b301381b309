//! Implements a tiny database: a map in memory, whose changes are appended to a log and replayed at
//! the next start.
//!
//! ```sh
//! cargo run -p haul-append-log --example database -- DIR set colour blue
//! cargo run -p haul-append-log --example database -- DIR get colour
//! ```

use std::collections::BTreeMap;
use std::error::Error;

use haul_append_log::{Log, Options, Position, SpacePriority};

/// Applies a change to the map. The change contains the length of the key in one byte, the key and
/// the value.
fn apply(map: &mut BTreeMap<String, String>, change: &[u8]) -> Option<()> {
    let (length, rest) = change.split_first()?;
    let (key, value) = rest.split_at_checked(usize::from(*length))?;
    map.insert(String::from_utf8(key.into()).ok()?, String::from_utf8(value.into()).ok()?);
    Some(())
}

#[expect(clippy::print_stdout, reason = "an example that talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [dir, command @ ..] = &words[..] else {
        return Err("usage: database DIR set KEY VALUE | get KEY".into());
    };
    // Opening the log passes all earlier changes to `replay`, in order.
    let options = Options { segment_bytes: 4 << 20, reserve_bytes: 0, ..Options::default() };
    let mut map = BTreeMap::new();
    let mut replay = |_at: Position, change: &[u8]| {
        apply(&mut map, change);
    };
    let (log, _recovered) = Log::open_dir(dir, options, &mut replay)?;

    match command {
        ["set", key, value] => {
            let length = [u8::try_from(key.len())?];
            let change: [&[u8]; 3] = [&length, key.as_bytes(), value.as_bytes()];
            let at = log.append(&change, SpacePriority::Ordinary)?.wait()?;
            println!("durable at {}", at.lsn);
        }
        ["get", key] => match map.get(*key) {
            Some(value) => println!("{value}"),
            None => return Err(format!("nothing is set for {key}").into()),
        },
        _ => return Err("usage: database DIR set KEY VALUE | get KEY".into()),
    }
    Ok(log.close()?)
}
