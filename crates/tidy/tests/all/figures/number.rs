//! Formats the figures of reports, and compares numbers of pages with them.

use serde_json::Value;

/// Returns the cell of a table: whole numbers with all digits, others with at least two.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('|', "\\|").replace('\n', " "),
        Value::Number(number) if number.is_f64() => fraction(number.as_f64().unwrap_or(0.0)),
        Value::Number(number) => grouped(&number.to_string()),
        _ => String::new(),
    }
}

fn fraction(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size >= 10.0 {
        let decimals = usize::from(size < 100.0);
        return grouped(&format!("{number:.decimals$}"));
    }
    let (mut decimals, mut bound) = (2, 0.1);
    while size < bound && decimals < 9 {
        bound /= 10.0;
        decimals += 1;
    }
    format!("{number:.decimals$}")
}

/// Separates thousands by commas.
fn grouped(number: &str) -> String {
    let sign = if number.starts_with('-') { "-" } else { "" };
    let digits = number.strip_prefix('-').unwrap_or(number);
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut grouped = sign.to_owned();
    for (at, digit) in digits[..whole].chars().enumerate() {
        if at > 0 && (whole - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &digits[whole..]
}

/// Returns the number of digits after the point; `None` if the text is not a number in digits.
fn decimals(text: &str) -> Option<usize> {
    let plain = text.replace(',', "");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, "0"));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = is_digits(whole) && is_digits(fraction);
    let is_written = text == plain || text == grouped(&plain);
    (is_number && is_written).then(|| if plain.contains('.') { fraction.len() } else { 0 })
}

/// `true` if the text is the figure, rounded to the digits of the text. A whole number may also be
/// rounded to its trailing zeros, if that changes the figure by a twentieth at most.
pub(super) fn is_rounded(text: &str, figure: f64) -> bool {
    let Some(decimals) = decimals(text) else { return false };
    let plain = text.replace(',', "");
    let Ok(number) = plain.parse::<f64>() else { return false };
    let error = (number - figure).abs() - 1e-9 * figure.abs();
    let half = |power, factor: f64| (0..power).fold(0.5, |half, _| half * factor);
    let zeros = plain.len() - plain.trim_end_matches('0').len();
    let is_short = || error <= half(zeros, 10.0) && error <= figure.abs() / 20.0;
    error <= half(decimals, 0.1) || !plain.contains('.') && is_short()
}

/// Returns the figure with as many digits after the point as the text has.
pub(super) fn like(text: &str, figure: &Value) -> String {
    match (decimals(text), figure.as_f64()) {
        (Some(decimals), Some(figure)) => grouped(&format!("{figure:.decimals$}")),
        _ => cell(figure),
    }
}

/// `true` if the text of a cell begins with a number, perhaps with a short unit.
pub(super) fn begins_with_number(cell: &str) -> bool {
    let text = cell.trim_start_matches(['*', '-', '+', '<', '~', '≈', ' ']);
    let first = text.split([' ', '*']).next().unwrap_or("");
    let unit = first.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.');
    first.starts_with(|c: char| c.is_ascii_digit()) && unit.chars().count() <= 3
}

#[test]
fn cells_have_the_digits_that_matter() {
    use serde_json::json;

    for (value, expected) in [
        (json!(1_234_567), "1,234,567"),
        (json!(-1234), "-1,234"),
        (json!(1500.4), "1,500"),
        (json!(99.94), "99.9"),
        (json!(1.0), "1.00"),
        (json!(0.0), "0"),
        (json!(0.00123), "0.0012"),
        (json!("a|b"), "a\\|b"),
        (json!(null), ""),
    ] {
        assert_eq!(cell(&value), expected);
    }
    assert_eq!(like("0.9", &json!(1234.56)), "1,234.6");
}

#[test]
fn only_rounded_numbers_are_equal() {
    for (text, figure, expected) in [
        ("0.96", 0.963, true),
        ("1", 0.963, true),
        ("58,484", 58484.3, true),
        ("58000", 58484.3, true),
        ("0", 0.2, true),
        ("0.97", 0.963, false),
        ("1.0", 0.93, false),
        ("60,000", 56_000.0, false),
        ("5,8484", 58484.0, false),
        ("10", 5.1, false),
        ("1.", 1.0, false),
        ("1-2", 1.0, false),
        ("", 0.0, false),
    ] {
        assert_eq!(is_rounded(text, figure), expected, "{text} {figure}");
    }
}

#[test]
fn cells_of_words_are_no_numbers() {
    let found = ["12", "**1,234**", "0.5 to 2", "< 3 µs", "17ms"].map(begins_with_number);
    assert_eq!(found, [true; 5]);
    let found = ["none", "", "[1](data/a.json \"b\")", "4096-byte"].map(begins_with_number);
    assert_eq!(found, [false; 4]);
}
