//! Parses lists of files to write at offsets. Performs no I/O.

use std::path::PathBuf;

/// A list line: the content of the file `path` is to be written at `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLine {
    /// The line number, counted from 1.
    pub number: u64,
    /// The offset in the target file, in bytes.
    pub offset: u64,
    /// The path of the file whose content is written.
    pub path: PathBuf,
}

/// The error for a malformed list line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an offset in bytes, a space and a path, such as: 4096 page.bin")]
pub struct ListLineError {
    /// The line number, counted from 1.
    pub number: u64,
}

/// Parses a list whose lines have the form `offset path`. Skips empty lines and lines that begin
/// with `#`.
///
/// # Errors
/// Yields a [`ListLineError`] for each malformed line.
pub fn list_lines(text: &str) -> impl Iterator<Item = Result<ListLine, ListLineError>> + '_ {
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| {
        let malformed = ListLineError { number };
        let (offset, path) = line.split_once(char::is_whitespace).ok_or(malformed)?;
        let offset = offset.parse().map_err(|_no_number| malformed)?;
        Ok(ListLine { number, offset, path: PathBuf::from(path.trim_start()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_offset_and_a_path() {
        let text = "# a comment\n\n 0  a b \n4096\tc\nx d\n7\n";
        let found: Vec<_> = list_lines(text).collect();
        let line = |number, offset, path: &str| Ok(ListLine { number, offset, path: path.into() });
        let malformed = |number| Err(ListLineError { number });
        assert_eq!(found, [line(3, 0, "a b"), line(4, 4096, "c"), malformed(5), malformed(6)]);
    }
}
