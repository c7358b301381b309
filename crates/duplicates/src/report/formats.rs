//! The four formats, one group after the other.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use super::{Group, Header, json, text};
use crate::escape::escape;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A header, then each group with its files indented; `read` understands it.
    #[default]
    Default,
    /// Files one a line, a blank line after each group.
    Fdupes,
    /// As `Fdupes`, with names as they are and NUL for the end of a line.
    Fdupes0,
    /// Columns `size,hash,count,files`; the files are the last columns.
    Csv,
    /// One object; `read` understands it, and gets the identity of each file with it.
    Json,
}

/// Writes a report while it comes.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: Format,
    is_first: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a report.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn begin(mut out: W, format: Format, header: &Header) -> io::Result<Self> {
        match format {
            Format::Default => text::header(&mut out, header)?,
            Format::Csv => writeln!(out, "size,hash,count,files")?,
            Format::Json => json::begin(&mut out, header)?,
            Format::Fdupes | Format::Fdupes0 => {}
        }
        Ok(Self { out, format, is_first: true })
    }

    /// Adds a group.
    ///
    /// # Errors
    /// When it cannot be written.
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

    /// Ends the report, and gives back what it was written to.
    ///
    /// # Errors
    /// When the end cannot be written.
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
