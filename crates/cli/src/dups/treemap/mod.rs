//! Draws the duplicates of a search as a treemap, in SVG: the area of a directory is the number of
//! bytes of redundant files below it. Pure.

mod layout;
mod tree;

use std::ops::RangeInclusive;

use haul_cli_common::svg::{Anchor, Cells, document, label};
use haul_duplicates::report::Group;

use self::layout::{Rect, squarified};
use self::tree::Tree;
use crate::units::{Bytes, Grouped};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 560.0;
const MAP: Rect = Rect { x: 24.0, y: 96.0, width: 672.0, height: 440.0 };
/// The smallest area of a rectangle; smaller ones of a directory are drawn as one.
const AREA_MIN: f64 = 200.0;
/// The levels of directories that have labels, their height, and the smallest size of a labelled
/// directory.
const LABELLED_DEPTHS: RangeInclusive<u32> = 1..=2;
const LABEL: f64 = 15.0;
const LABELLED: (f64, f64) = (64.0, 40.0);
/// The approximate width of a character of a label.
const CHARACTER: f64 = 6.4;
/// The classes of files by the number of their copies.
const CLASSES: [(u64, &str, &str); 4] =
    [(10, "h8", "10 copies and more"), (4, "h6", "4 to 9"), (3, "h4", "3"), (0, "h2", "2")];

/// Returns the picture of the redundant files of all groups.
pub(super) fn treemap(groups: impl Iterator<Item = Group>) -> String {
    let tree = Tree::of(groups);
    let mut drawn = Drawn::default();
    draw(&tree, MAP, 0, &mut drawn);
    let copies = match tree.files {
        1 => "redundant copy",
        _ => "redundant copies",
    };
    let title = format!("{} in {} {copies}", Bytes(tree.bytes), Grouped(tree.files));
    let hint = format!(
        "below {}. The area is the number of bytes that removing the copies frees.",
        tree.name
    );
    let largest = tree.children.iter().take(10);
    let largest = largest.map(|child| format!("{}: {}", child.name, Bytes(child.bytes)));
    let description =
        format!("Redundant bytes by directory. {}.", largest.collect::<Vec<_>>().join("; "));
    let marks = key() + &drawn.cells.finish() + &drawn.labels;
    document((WIDTH, HEIGHT), &title, &hint, &description, &marks)
}

#[derive(Default)]
struct Drawn {
    cells: Cells,
    labels: String,
}

impl Drawn {
    fn cell(&mut self, class: &str, rect: Rect) {
        let gap = if rect.width > 3.0 && rect.height > 3.0 { 1.0 } else { 0.0 };
        self.cells.add(class, (rect.x, rect.y), (rect.width - gap, rect.height - gap));
    }

    /// Draws as much of a text as the width allows.
    fn label(&mut self, rect: Rect, class: &str, text: &str) {
        #[expect(clippy::cast_possible_truncation, reason = "the width of a picture")]
        #[expect(clippy::cast_sign_loss, reason = "a width is not negative")]
        let characters_max = ((rect.width - 8.0) / CHARACTER).max(0.0) as usize;
        let mut shown: String = text.chars().take(characters_max).collect();
        if shown.len() < text.len() {
            shown.pop();
            shown.push('…');
        }
        self.labels += &label(rect.x + 3.0, rect.y + 11.5, Anchor::Start, class, &shown);
    }
}

/// Draws a directory or a file in a rectangle.
fn draw(node: &Tree, rect: Rect, depth: u32, drawn: &mut Drawn) {
    if node.children.is_empty() {
        drawn.cell(class(node.copies), rect);
        return;
    }
    let mut inner = rect;
    if LABELLED_DEPTHS.contains(&depth) && rect.width >= LABELLED.0 && rect.height >= LABELLED.1 {
        let text = format!("{} {}", node.name, Bytes(node.bytes));
        drawn.label(rect, if depth == 1 { "name" } else { "tick" }, &text);
        let (height, gap) = (rect.height - LABEL, 2.0);
        inner = Rect { y: rect.y + LABEL, height: height - gap, width: rect.width - gap, ..rect };
    }
    let area = inner.width * inner.height;
    let is_large = |child: &&Tree| area * child.share_of(node) >= AREA_MIN;
    let large: Vec<&Tree> = node.children.iter().take_while(is_large).collect();
    let small = &node.children[large.len()..];
    let small_bytes: u64 = small.iter().map(|child| child.bytes).sum();
    let mut weights: Vec<f64> = large.iter().map(|child| child.bytes as f64).collect();
    if small_bytes > 0 {
        weights.push(small_bytes as f64);
    }
    let mut rects = squarified(&weights, inner).into_iter();
    for (child, rect) in large.iter().zip(&mut rects) {
        draw(child, rect, depth + 1, drawn);
    }
    if let Some(rect) = rects.next() {
        let copies = small.iter().map(|child| child.copies).max().unwrap_or(2);
        drawn.cell(class(copies), rect);
    }
}

fn class(copies: u64) -> &'static str {
    CLASSES.iter().find(|(least, ..)| copies >= *least).map_or("h2", |(_, class, _)| class)
}

/// Explains the colours.
fn key() -> String {
    let mut cells = Cells::default();
    let mut marks = label(24.0, 80.0, Anchor::Start, "tick", "Copies of the file:");
    let mut x = 132.0;
    for (_, class, text) in CLASSES.iter().rev() {
        cells.add(class, (x, 69.0), (14.0, 12.0));
        marks += &label(x + 19.0, 80.0, Anchor::Start, "tick", text);
        x += 34.0 + CHARACTER * text.len() as f64;
    }
    marks + &cells.finish()
}

#[cfg(test)]
mod tests {
    use haul_duplicates::report::Member;
    use haul_testing::assert_well_formed;

    use super::*;

    fn group(bytes: u64, paths: &[&str]) -> Group {
        let member = |path: &&str| Member { path: path.into(), identity: None };
        let members = paths.iter().map(member).collect();
        Group { bytes, hash: String::new(), members }
    }

    #[test]
    fn directories_have_the_redundant_bytes_below_them() {
        let groups = [
            group(3 << 20, &["/d/a/1", "/d/b/1", "/d/c/x/1"]),
            group(1 << 20, &["/d/a/2", "/d/b/<2>"]),
        ];
        let picture = treemap(groups.into_iter());
        assert_well_formed(&picture);
        for text in ["7 MiB in 3 redundant copies", "below /d.", ">b 4 MiB<", ">c/x 3 MiB<"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        assert!(!picture.contains("a 4 MiB"), "the first file of a group is kept");
    }

    #[test]
    fn search_with_many_duplicates_has_a_small_picture() {
        let paths: Vec<_> = (0..20_000).map(|n| format!("/d/{}/{}/{n}", n % 7, n % 91)).collect();
        let groups = paths.iter().zip(1..).map(|(path, n)| group(n, &["/d/kept", path]));
        let picture = treemap(groups);
        assert_well_formed(&picture);
        assert!(picture.len() < 60_000, "{} B", picture.len());
        assert_well_formed(&treemap(std::iter::empty()));
    }
}
