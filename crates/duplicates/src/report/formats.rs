//! Writes reports group by group, in five formats.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use super::{Group, Header, json, text};
use crate::escape::escape;

/// A report format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A header, then each group with its files indented. [`read`](super::read) can read it.
    #[default]
    Default,
    /// One escaped file name per line, and an empty line after each group.
    Fdupes,
    /// The unescaped file names, each followed by NUL, and another NUL after each group.
    Fdupes0,
    /// Comma-separated columns: `size,hash,count,files`, with one column per file.
    Csv,
    /// One JSON object that includes the identities of the files. [`read`](super::read) can read
    /// it.
    Json,
}

/// A writer of reports.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: Format,
    is_first: bool,
}

impl<W: Write> Writer<W> {
    /// Starts a report and writes its header, if the format has one.
    ///
    /// # Errors
    /// Fails if `out` cannot be written.
    pub fn begin(mut out: W, format: Format, header: &Header) -> io::Result<Self> {
        match format {
            Format::Default => text::header(&mut out, header)?,
            Format::Csv => writeln!(out, "size,hash,count,files")?,
            Format::Json => json::begin(&mut out, header)?,
            Format::Fdupes | Format::Fdupes0 => {}
        }
        Ok(Self { out, format, is_first: true })
    }

    /// Writes a group.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn group(&mut self, group: &Group) -> io::Result<()> {
        let is_first = std::mem::take(&mut self.is_first);
        let out = &mut self.out;
        match self.format {
            Format::Default => text::group(out, group),
            Format::Csv => csv(out, group),
            Format::Json => json::group(out, group, is_first),
            Format::Fdupes => {
                for member in &group.members {
                    writeln!(out, "{}", escape(member.path.as_os_str().as_bytes()))?;
                }
                writeln!(out)
            }
            Format::Fdupes0 => {
                for member in &group.members {
                    out.write_all(member.path.as_os_str().as_bytes())?;
                    out.write_all(b"\0")?;
                }
                out.write_all(b"\0")
            }
        }
    }

    /// Completes the report and returns the output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        if self.format == Format::Json {
            json::end(&mut self.out, self.is_first)?;
        }
        Ok(self.out)
    }
}

fn csv(out: &mut impl Write, group: &Group) -> io::Result<()> {
    write!(out, "{},{},{}", group.bytes, group.hash, group.members.len())?;
    for member in &group.members {
        let name = escape(member.path.as_os_str().as_bytes());
        if name.contains(['"', ',']) {
            write!(out, ",\"{}\"", name.replace('"', "\"\""))?;
        } else {
            write!(out, ",{name}")?;
        }
    }
    writeln!(out)
}
