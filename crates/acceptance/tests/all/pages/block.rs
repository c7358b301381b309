//! Finds the code blocks of a page.

/// The line before each block of a session.
const MARK: &str = "<!-- session -->";

/// A code block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The heading above the block.
    pub(crate) heading: String,
    /// The word after the first fence: `sh` for commands.
    pub(crate) language: String,
    /// The lines, without the indentation of the block.
    pub(crate) lines: Vec<String>,
    /// `true` if the block belongs to the session of the page.
    pub(crate) is_session: bool,
}

impl Block {
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Returns the code blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, Option<(usize, Block)>) = (Vec::new(), None);
    let (mut heading, mut is_session) = (String::new(), false);
    for line in page.lines() {
        let text = line.trim();
        match open.take() {
            Some((_, block)) if text == "```" => blocks.push(block),
            Some((indentation, mut block)) => {
                block.lines.push(line.get(indentation..).unwrap_or("").to_owned());
                open = Some((indentation, block));
            }
            None if text.starts_with("```") => {
                let (heading, language) = (heading.clone(), text[3..].to_owned());
                let block = Block { heading, language, lines: Vec::new(), is_session };
                open = Some((line.len() - line.trim_start().len(), block));
                is_session = false;
            }
            None if text.is_empty() => {}
            None => {
                is_session = text == MARK;
                if line.starts_with('#') {
                    heading = line.trim_start_matches('#').trim().to_owned();
                }
            }
        }
    }
    assert!(open.is_none(), "the last block has no end");
    blocks
}

#[test]
fn blocks_have_heading_language_and_mark() {
    let page = "# A\n```sh\na \\\n  b\n```\n## B `c`\n<!-- session -->\n\n```sh\n# c\n```\n\
                <!-- session -->\nprose\n1. d\n   ```toml\n   e = 1\n\n   ```\n";
    let block = |heading: &str, language: &str, lines: &[&str], is_session| Block {
        heading: heading.to_owned(),
        language: language.to_owned(),
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        is_session,
    };
    let expected = [
        block("A", "sh", &["a \\", "  b"], false),
        block("B `c`", "sh", &["# c"], true),
        block("B `c`", "toml", &["e = 1", ""], false),
    ];
    // The last block is in section B, but is not part of the session.
    assert_eq!(blocks(page), expected);
}
