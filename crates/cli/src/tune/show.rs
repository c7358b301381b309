//! What was found, for people. Pure.

use std::fmt::Write;

use super::advice::{Finding, Remedy, Weight};
use super::case::Case;
use super::outlook;
use super::setting::Setting;
use crate::output::Name;

/// How wide a line gets.
const WIDTH: usize = 100;

/// The whole of it.
pub(super) fn text(case: &Case, findings: &[Finding]) -> String {
    let mut text = String::from("memory\n");
    paragraph(&mut text, "  ", "  ", &outlook::memory(&case.machine));
    text.push_str("\nwhat happens to writers\n");
    for sentence in outlook::writers(case) {
        paragraph(&mut text, "  - ", "    ", &sentence);
    }
    for (weight, title) in [
        (Weight::Danger, "data may be lost"),
        (Weight::Slow, "somebody waits longer than need be"),
        (Weight::Note, "good to know"),
    ] {
        let of_weight: Vec<_> =
            findings.iter().filter(|finding| finding.weight == weight).collect();
        if of_weight.is_empty() {
            continue;
        }
        writeln!(text, "\n{title}").ok();
        for finding in of_weight {
            one(&mut text, finding);
        }
    }
    if findings.is_empty() {
        text.push_str("\nnothing to recommend\n");
    }
    text
}

fn one(text: &mut String, finding: &Finding) {
    let told = format!("{}: {}", finding.about, finding.text);
    paragraph(text, "  - ", "    ", &told);
    match &finding.remedy {
        Some(Remedy::Settings(settings)) => {
            for setting in settings {
                line(text, &format!("    --apply sets {}", setting.told()));
            }
        }
        Some(Remedy::ByHand(command)) => line(text, &format!("    by hand: {command}")),
        None => {}
    }
    if let Some(source) = finding.source {
        line(text, &format!("    see: {source}"));
    }
}

/// What `--apply` would set, and how it would be kept.
pub(super) fn keep(settings: &[Setting]) -> String {
    let mut text = String::new();
    if settings.is_empty() {
        return text;
    }
    text.push_str("\nwhat is set lasts until the next start; these lines keep it\n");
    for setting in settings {
        let (file, kept) = setting.keep();
        line(&mut text, &format!("  {file}: {kept}"));
    }
    text
}

/// One line, whatever is in it.
fn line(text: &mut String, line: &str) {
    writeln!(text, "{}", Name(line)).ok();
}

/// Words in lines that are not too long.
fn paragraph(text: &mut String, first: &str, others: &str, words: &str) {
    let mut current = first.to_owned();
    let mut is_begun = false;
    for word in units_together(words) {
        let is_full = current.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_begun && is_full {
            line(text, &current);
            others.clone_into(&mut current);
            is_begun = false;
        }
        if is_begun {
            current.push(' ');
        }
        current.push_str(&word);
        is_begun = true;
    }
    line(text, &current);
}

/// The words, each number with the unit behind it.
fn units_together(words: &str) -> Vec<String> {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut together: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in words.split(' ') {
        match together.last_mut().filter(|_| is_open) {
            Some(last) => *last = format!("{last} {word}"),
            None => together.push(word.to_owned()),
        }
        is_open = !word.is_empty() && is_number(word);
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::advice::advise;
    use crate::tune::case::tests::{MIB, case, mount, place};
    use crate::tune::rate::{Known, Rate};

    #[test]
    fn findings_stand_by_weight_with_what_to_do() {
        let mut facts = mount("/");
        facts.options.push("nobarrier".to_owned());
        let mut slow = place(facts);
        slow.rate = Rate::exactly(20 * MIB, Known::Measured);
        let case = case(vec![slow]);
        let findings = advise(&case);
        let text = text(&case, &findings);
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}\n{text}"));
        assert!(at("what happens to writers") < at("data may be lost"));
        assert!(at("by hand: mount -o remount,barrier /") < at("somebody waits longer"));
        at("    --apply sets vm.dirty_background_bytes: 10 % (by ratio) → 16777216 (16 MiB)\n");
        at("    see: J. Corbet");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 20), "{text}");
        let keep = keep(&crate::tune::advice::settings(&findings));
        assert!(keep.contains("/etc/sysctl.d/90-haul.conf: vm.dirty_bytes = 100663296"), "{keep}");
    }

    #[test]
    fn a_machine_in_good_order_is_told_so() {
        let case = case(vec![place(mount("/"))]);
        assert!(text(&case, &[]).ends_with("\nnothing to recommend\n"));
        assert_eq!(keep(&[]), "");
    }

    #[test]
    fn long_words_stand_alone_and_names_stay_in_their_line() {
        let mut text = String::new();
        let long = "x".repeat(120);
        paragraph(&mut text, "- ", "  ", &format!("a {long} b\n\u{1b}[31m"));
        assert_eq!(text, format!("- a\n  {long}\n  b\\n\\u{{1b}}[31m\n"));
        assert_eq!(
            units_together("up to 4.4 GiB take 89 s: 5"),
            ["up", "to", "4.4 GiB", "take", "89 s:", "5"]
        );
    }
}
