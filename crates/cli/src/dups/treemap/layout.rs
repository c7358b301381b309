//! Divides a rectangle into smaller ones of given areas that are nearly square. Pure.
//!
//! # Source
//! \[Bruls00\]: rows are filled along the shorter side as long as their worst ratio of sides improves.

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Returns a rectangle for each weight, in the same order. The weights are positive and descending;
/// the last one may be larger.
pub(super) fn squarified(weights: &[f64], rect: Rect) -> Vec<Rect> {
    let scale = rect.width * rect.height / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let areas: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let (mut free, mut first) = (rect, 0);
    let mut rects = Vec::with_capacity(areas.len());
    while first < areas.len() {
        let side = free.width.min(free.height).max(f64::MIN_POSITIVE);
        let mut end = first + 1;
        while end < areas.len()
            && worst(&areas[first..=end], side) <= worst(&areas[first..end], side)
        {
            end += 1;
        }
        free = fill(&areas[first..end], free, &mut rects);
        first = end;
    }
    rects
}

/// Returns the largest ratio of the sides of the rectangles of a row along a side.
fn worst(areas: &[f64], side: f64) -> f64 {
    let thickness = areas.iter().sum::<f64>() / side;
    let ratio = |area: &f64| {
        let length = area / thickness;
        (length / thickness).max(thickness / length)
    };
    areas.iter().map(ratio).fold(0.0, f64::max)
}

/// Adds the rectangles of a row along the shorter side, and returns what is left.
fn fill(areas: &[f64], free: Rect, rects: &mut Vec<Rect>) -> Rect {
    let all = areas.iter().sum::<f64>();
    if free.width >= free.height {
        let (width, mut y) = (all / free.height, free.y);
        for area in areas {
            let height = area / width;
            rects.push(Rect { x: free.x, y, width, height });
            y += height;
        }
        Rect { x: free.x + width, width: (free.width - width).max(0.0), ..free }
    } else {
        let (height, mut x) = (all / free.width, free.x);
        for area in areas {
            let width = area / height;
            rects.push(Rect { x, y: free.y, width, height });
            x += width;
        }
        Rect { y: free.y + height, height: (free.height - height).max(0.0), ..free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_have_their_areas_and_fill_the_whole() {
        let whole = Rect { x: 10.0, y: 20.0, width: 600.0, height: 400.0 };
        let weights = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let rects = squarified(&weights, whole);
        for (rect, weight) in rects.iter().zip(weights) {
            let area = rect.width * rect.height;
            assert!((area - weight * 10_000.0).abs() < 1.0, "{rect:?}");
            let ratio = (rect.width / rect.height).max(rect.height / rect.width);
            assert!(ratio < 4.0, "{rect:?}");
            let is_inside = rect.x > 9.99
                && rect.y > 19.99
                && rect.x + rect.width < 610.01
                && rect.y + rect.height < 420.01;
            assert!(is_inside, "{rect:?}");
        }
        let overlap = |a: &Rect, b: &Rect| {
            a.x + a.width > b.x + 0.01
                && b.x + b.width > a.x + 0.01
                && a.y + a.height > b.y + 0.01
                && b.y + b.height > a.y + 0.01
        };
        for (number, rect) in rects.iter().enumerate() {
            assert!(rects[number + 1..].iter().all(|other| !overlap(rect, other)), "{rect:?}");
        }
        assert_eq!(squarified(&[5.0], whole), [whole]);
        assert_eq!(squarified(&[], whole), []);
    }
}
