//! Draws the frame of a chart with its description. The marks in it are those of all pictures.

pub(super) use haul_cli_common::svg::{Anchor, Scale, dot, label, line, polyline, ticks};

use super::html::escaped;

/// Returns a figure: a heading, the chart, and a caption. `description` says what the chart shows,
/// for readers who do not see it. `id` makes the names of the parts unique in the page.
pub(super) fn figure(
    id: &str,
    size: (f64, f64),
    title: &str,
    description: &str,
    marks: &str,
) -> String {
    let (title, description) = (escaped(title), escaped(description));
    format!(
        "<figure class=\"chart\" id=\"{id}\">\n<figcaption>{title}</figcaption>\n\
         <svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n\
         {marks}</svg>\n<p class=\"hint\">{description}</p>\n</figure>\n",
        size.0, size.1
    )
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::*;

    #[test]
    fn figures_are_described() {
        let marks = label(1.0, 2.0, Anchor::End, "tick", "a < b");
        let figure = figure("id", (10.0, 20.0), "a & b", "It shows x.", &marks);
        assert_well_formed(&figure);
        assert!(figure.contains("a &lt; b") && figure.contains("<desc id=\"id-desc\">It shows x."));
    }
}
