//! Writes lines to a rotated log, and reads them back.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use haul_line_log::{Environment, LineLog, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("log");
    let log = Arc::new(LineLog::open(&path, Options::default(), Environment::default())?);
    log.append(b"a line\nand one more\n")?; // in memory
    writeln!(&*log, "{} is one append, too", 42)?;
    log.write_out()?; // survives a crash of the process
    log.sync()?; // survives a power cut
    log.rotate()?; // closes the file, and begins another one
    log.append(b"the first line of another file\n")?;
    log.close()?;

    for entry in std::fs::read_dir(&path)? {
        let file = entry?.path();
        println!("{}: {} bytes", file.display(), file.metadata()?.len());
    }
    assert_eq!(std::fs::read(path.join("current"))?, b"the first line of another file\n");
    Ok(())
}
