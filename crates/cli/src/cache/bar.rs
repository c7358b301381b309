//! Renders the residency of a file in the page cache as a bar, from the start to the end of the
//! file. The module does no I/O.

/// The number of cells of a bar; each cell stands for a range of pages.
pub(super) const CELLS: u64 = 32;

/// Returns the first page and the number of pages of each cell. A file with fewer pages than
/// [`CELLS`] has one cell per page.
pub(super) fn windows(pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let cells = CELLS.min(pages);
    let start = move |cell: u64| {
        let start = u128::from(cell) * u128::from(pages) / u128::from(cells.max(1));
        u64::try_from(start).unwrap_or(pages)
    };
    (0..cells).map(move |cell| (start(cell), start(cell + 1) - start(cell)))
}

/// Renders a bar from the number of resident pages and the number of pages of each cell.
pub(super) fn bar(windows: &[(u64, u64)]) -> String {
    let mut bar: String = windows.iter().map(|(resident, of)| cell(*resident, *of)).collect();
    let empty = usize::try_from(CELLS).unwrap_or(0).saturating_sub(windows.len());
    bar.insert(0, '▕');
    bar.push('▏');
    bar.extend(std::iter::repeat_n(' ', empty));
    bar
}

fn cell(resident: u64, of: u64) -> char {
    match resident {
        0 => '·',
        all if all >= of => '█',
        // The shading shows the resident share in thirds.
        some if some.saturating_mul(3) <= of => '░',
        some if some.saturating_mul(3) <= of.saturating_mul(2) => '▒',
        _ => '▓',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_every_page_once() {
        for pages in [0, 1, 2, 31, 32, 33, 64, 1000, 1 << 40, u64::MAX] {
            let mut next = 0;
            for (first, count) in windows(pages) {
                assert_eq!(first, next);
                assert!(count > 0, "{pages}: an empty window");
                next += count;
            }
            assert_eq!(next, pages);
            assert_eq!(windows(pages).count() as u64, pages.min(CELLS));
        }
    }

    #[test]
    fn bar_shows_residency_from_beginning_to_end() {
        for (windows, expected) in [
            (&[][..], "▕▏"),
            (&[(1, 1)], "▕█▏"),
            (&[(0, 1), (1, 1)], "▕·█▏"),
            (&[(10, 10), (1, 10), (3, 10), (4, 10), (6, 10), (7, 10), (9, 10)], "▕█░░▒▒▓▓▏"),
            (&[(1, 1_000_000), (999_999, 1_000_000)], "▕░▓▏"),
        ] {
            let bar = bar(windows);
            assert_eq!(bar.trim_end(), expected);
            assert_eq!(bar.chars().count(), 34, "all bars have the same width");
        }
    }
}
