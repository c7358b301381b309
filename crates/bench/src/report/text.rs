//! Formats numbers and lines of text. Performs no I/O.

/// The text of a missing number.
pub(super) const NOT_MEASURED: &str = "-";

/// Formats a number with its digits grouped in threes.
pub(super) fn grouped(number: f64, decimals: u8) -> String {
    let text = format!("{:.*}", usize::from(decimals), number.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::from(if number < 0.0 { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Returns the number of columns that a text takes in a terminal.
pub(super) fn columns_wide(text: &str) -> usize {
    text.chars().count()
}

/// Pads a text to `width` columns; numbers are aligned at the right.
fn pad(text: &str, width: usize, is_number: bool) -> String {
    let spaces = " ".repeat(width.saturating_sub(columns_wide(text)));
    if is_number { spaces + text } else { text.to_owned() + &spaces }
}

/// Aligns the cells of rows in columns; numbers, in columns for which `is_number` is true, at the
/// right.
pub(crate) fn lines(rows: &[Vec<String>], is_number: impl Fn(usize) -> bool) -> Vec<String> {
    let wide = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| columns_wide(cell)).max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let cells: Vec<_> = cells.map(|(at, cell)| pad(cell, wide(at), is_number(at))).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Wraps text at `width` characters, but at 120 at most.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    const WIDTH_MAX: usize = 120;
    let width = width.min(WIDTH_MAX);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let wide = columns_wide(word);
        if used > 0 && used + 1 + wide > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += wide;
    }
    out + "\n"
}

/// Wraps text as [`wrapped`] does, with its first line indented by `first` characters and the
/// others by `rest`.
pub(crate) fn indented(text: &str, width: usize, first: usize, rest: usize) -> String {
    let wrapped = wrapped(text, width.saturating_sub(rest));
    let line = |(number, line): (usize, &str)| {
        format!("{}{line}\n", " ".repeat(if number == 0 { first } else { rest }))
    };
    wrapped.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words() {
        for (text, width, expected) in [
            ("a bc def", 4, "a bc\ndef\n"),
            ("a bc def", 8, "a bc def\n"),
            ("abcdef g", 3, "abcdef\ng\n"),
            ("", 3, "\n"),
        ] {
            assert_eq!(wrapped(text, width), expected, "{text} in {width}");
        }
    }

    #[test]
    fn digits_are_grouped_in_threes() {
        let numbers = [(0.0, 0), (999.6, 0), (1_234_567.891, 2), (-1234.0, 0)];
        let texts = numbers.map(|(number, decimals)| grouped(number, decimals));
        assert_eq!(texts, ["0", "1,000", "1,234,567.89", "-1,234"]);
    }
}
