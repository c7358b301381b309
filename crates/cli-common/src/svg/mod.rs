//! Draws the parts that all pictures share: scales, axes, labels, cells, and a whole document.

mod quantity;
mod scale;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub use quantity::{duration_label, rate_label};
pub use scale::{Scale, ticks};

use crate::report::{OrFail, Result};

/// The colours and fonts of a document, for a light and for a dark background.
const STYLE: &str = include_str!("style.css");

/// Escapes a text for the content of an element and for an attribute in quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            character => out.push(character),
        }
    }
    out
}

/// The horizontal alignment of a label.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The label starts at its position.
    Start,
    /// The middle of the label is at its position.
    Middle,
    /// The label ends at its position.
    End,
}

/// Returns a label with the class `class`.
pub fn label(x: f64, y: f64, anchor: Anchor, class: &str, text: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
        escaped(text)
    )
}

/// Returns a straight line with the class `class`.
pub fn line(from: (f64, f64), to: (f64, f64), class: &str) -> String {
    format!(
        "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

/// Returns a line through all points with the class `class`.
pub fn polyline(points: &[(f64, f64)], class: &str) -> String {
    let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    format!("<path class=\"{class}\" d=\"M{}\"/>\n", points.join("L"))
}

/// Returns a dot with the class `class`.
pub fn dot(at: (f64, f64), radius: f64, class: &str) -> String {
    format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"/>\n", at.0, at.1)
}

/// Filled rectangles. Those of a class are one element, so that many of them take few bytes.
#[derive(Debug, Default)]
pub struct Cells(BTreeMap<String, String>);

impl Cells {
    /// Adds a rectangle by its left and upper end and its size. The class `cell` and `class` have
    /// its colour.
    pub fn add(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let path = self.0.entry(class.to_owned()).or_default();
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(short);
        // Writing to a string cannot fail.
        write!(path, "M{x} {y}h{width}v{height}h-{width}z").ok();
    }

    /// Returns one path for each class.
    #[must_use]
    pub fn finish(self) -> String {
        let path = |(class, path): (String, String)| {
            format!("<path class=\"cell {class}\" d=\"{path}\"/>\n")
        };
        self.0.into_iter().map(path).collect()
    }
}

/// Formats a length with one decimal, or none if it is zero.
fn short(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Returns a whole document on a background of its own, so that it can be shown on any page. It
/// shows the title and the hint; `description` is for readers who do not see it.
#[must_use]
pub fn document(
    size: (f64, f64),
    title: &str,
    hint: &str,
    description: &str,
    marks: &str,
) -> String {
    let (width, height) = size;
    let heading = label(24.0, 36.0, Anchor::Start, "title", title)
        + &label(24.0, 56.0, Anchor::Start, "tick", hint);
    let (title, description) = (escaped(title), escaped(description));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>\n\
         <style>\n{STYLE}</style>\n\
         <rect class=\"card\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>\n\
         {heading}{marks}</svg>\n"
    )
}

/// Writes a picture to a file, which is created or replaced.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write(path: &Path, picture: &str) -> Result {
    fs::write(path, picture).or_not_start(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::*;

    #[test]
    fn documents_are_well_formed_and_refer_to_nothing() {
        let mut cells = Cells::default();
        cells.add("a", (0.0, 1.0), (2.5, 3.0));
        cells.add("a", (4.0, 1.0), (2.0, 3.0));
        cells.add("b", (0.0, 0.0), (1.0, 1.0));
        let cells = cells.finish();
        assert_eq!(cells.matches("<path").count(), 2);
        assert!(cells.contains("class=\"cell a\" d=\"M0 1h2.5v3h-2.5zM4 1h2v3h-2z\""), "{cells}");
        let marks = label(1.0, 2.0, Anchor::End, "tick", "a < b")
            + &line((0.0, 0.0), (1.0, 1.0), "rule")
            + &polyline(&[(0.0, 1.0), (2.0, 3.0)], "curve")
            + &dot((1.0, 1.0), 3.0, "dot");
        let picture =
            document((10.0, 20.0), "a & b", "It's <small>", "It shows x.", &(marks + &cells));
        assert_well_formed(&picture);
        assert!(picture.contains("a &lt; b") && picture.contains("It&#39;s &lt;small&gt;"));
        assert_eq!(picture.matches("http").count(), 1, "only the name space");
        assert!(!picture.contains("url(") && !picture.contains("@import"));
    }
}
