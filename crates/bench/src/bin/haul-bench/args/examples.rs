//! Looks up the examples that end the long help of each command.

/// The examples of all commands: paragraphs of a command's name and its indented command lines.
const EXAMPLES: &str = include_str!("examples.txt");

/// Returns the examples of a command, below a heading.
pub(super) fn examples(command: &str) -> String {
    let mut paragraphs = EXAMPLES.split("\n\n").filter_map(|it| it.trim_end().split_once('\n'));
    let lines = paragraphs.find(|(name, _)| *name == command).map(|(_, lines)| lines);
    format!("Examples:\n{}", lines.unwrap_or_default())
}
