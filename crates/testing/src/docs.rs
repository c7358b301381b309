//! Parses the examples in the documentation: command lines, and bytes in hexadecimal.

use std::fs;
use std::path::PathBuf;

use crate::program::root;

/// Returns the words of each simple command in a shell line, without redirections and comments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let (mut quote, mut to_file) = (None, false);
    let mut chars = line.chars().peekable();
    loop {
        let next = chars.next();
        let c = next.unwrap_or('\n');
        if quote.is_some() && next.is_some() {
            match c {
                c if quote == Some(c) => quote = None,
                c => word.get_or_insert_default().push(c),
            }
            continue;
        }
        match c {
            '\'' | '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if !c.is_whitespace() && !"|&;()<>".contains(c) => {
                if c == '#' && word.is_none() {
                    chars.by_ref().for_each(drop);
                } else {
                    word.get_or_insert_default().push(c);
                }
            }
            c => {
                let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
                let descriptor = "<>".contains(c) && word.as_ref().is_some_and(is_number);
                let ended = word.take();
                let is_file = std::mem::take(&mut to_file) && ended.is_some();
                words.extend(ended.filter(|_| !descriptor && !is_file));
                match c {
                    '<' | '>' => {
                        chars.next_if(|c| "&>".contains(*c));
                        chars.next_if_eq(&' ');
                        to_file = true;
                    }
                    '|' | '&' | ';' | '(' | ')' | '\n' => all.push(std::mem::take(&mut words)),
                    _ => {}
                }
            }
        }
        if next.is_none() {
            all.retain(|words| !words.is_empty());
            return all;
        }
    }
}

/// Returns the words of each command that runs `haul` in a shell line, beginning with the program.
#[must_use]
pub fn haul_commands(line: &str) -> Vec<Vec<String>> {
    let ours = |words: Vec<String>| {
        let before = |word: &&String| {
            ["sudo", "until", "while", "if"].contains(&word.as_str()) || word.contains('=')
        };
        let skip = words.iter().take_while(before).count();
        let is_ours = |word: &String| word == "haul" || word.ends_with("/haul");
        words.get(skip).is_some_and(is_ours).then(|| words[skip..].to_vec())
    };
    commands(line).into_iter().filter_map(ours).collect()
}

/// Returns the command lines in the code blocks of a page. If a block has prompts (`$ `), only the
/// text after a prompt is a command line.
#[must_use]
pub fn command_lines(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks
        .flat_map(|block| {
            let joined = block.replace("\\\n", " ");
            let has_prompt = joined.lines().any(|line| line.starts_with("$ "));
            let of = |line: &str| match line.strip_prefix("$ ") {
                None if has_prompt => None,
                line_or_not => Some(line_or_not.unwrap_or(line).to_owned()),
            };
            joined.lines().filter_map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the path and the text of the README and of each page below `docs`.
///
/// # Panics
/// Panics if a page cannot be read.
#[must_use]
pub fn pages() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut folders = vec![root.join("docs")];
    let mut pages = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|end| end.to_str()) {
                Some("md") => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    pages.into_iter().map(text).collect()
}

/// Returns the bytes of the first ```` ```hex ```` block of a page. Each line contains hexadecimal
/// bytes, optionally followed by `|` and a comment.
///
/// # Panics
/// Panics if the block contains anything else.
#[must_use]
pub fn hex_example(page: &str) -> Vec<u8> {
    page.lines()
        .skip_while(|line| *line != "```hex")
        .skip(1)
        .take_while(|line| *line != "```")
        .flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_by_a_shell() {
        let line =
            "a 2>&1 | sudo X=1 ./haul log d 'x | y' > f -0 && (echo \"b;c\"; haul x) & # haul no";
        let found = haul_commands(line);
        assert_eq!(found, [vec!["./haul", "log", "d", "x | y", "-0"], vec!["haul", "x"]]);
        let page = "haul no\n```\nhaul a \\\n  --b\n```\nno\n```\n$ haul c\nhaul no\n```\n";
        let found: Vec<_> =
            command_lines(page).iter().flat_map(|line| haul_commands(line)).collect();
        assert_eq!(found, [vec!["haul", "a", "--b"], vec!["haul", "c"]]);
    }
}
