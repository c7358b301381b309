//! Formats the results of `haul tune` as text.

use std::fmt::Write;

use haul_units::Name;

use crate::case::Case;
use crate::finding::{Finding, Remedy, Severity};
use crate::outlook;
use crate::persisted::PersistedSetting;
use crate::setting::Setting;

/// The maximum width of a line in characters.
const WIDTH: usize = 100;

/// Returns the predictions and the findings as text.
pub fn text(case: &Case, findings: &[Finding]) -> String {
    let mut text = String::from("memory\n");
    paragraph(&mut text, "  ", "  ", &outlook::memory(&case.machine));
    text.push_str("\nwriteback and stalls\n");
    for sentence in outlook::writers(case) {
        paragraph(&mut text, "  - ", "    ", &sentence);
    }
    for (severity, title) in [
        (Severity::Danger, "risk of data loss"),
        (Severity::Slow, "avoidable delays"),
        (Severity::Note, "notes"),
    ] {
        let same_severity: Vec<_> =
            findings.iter().filter(|finding| finding.severity == severity).collect();
        if same_severity.is_empty() {
            continue;
        }
        writeln!(text, "\n{title}").ok();
        for finding in same_severity {
            one(&mut text, finding);
        }
    }
    if findings.is_empty() {
        text.push_str("\nno recommendations\n");
    }
    text
}

fn one(text: &mut String, finding: &Finding) {
    let sentence = format!("{}: {}", finding.about, finding.text);
    paragraph(text, "  - ", "    ", &sentence);
    match &finding.remedy {
        Some(Remedy::Settings(settings)) => {
            for setting in settings {
                line(text, &format!("    --apply sets {}", setting.describe()));
            }
        }
        Some(Remedy::ByHand(command)) => line(text, &format!("    by hand: {command}")),
        None => {}
    }
    if let Some(source) = finding.source {
        line(text, &format!("    see: {source}"));
    }
}

/// Returns the configuration lines that make the settings persistent, after an introductory line;
/// an empty text if there are no settings.
pub fn persist(settings: &[Setting]) -> String {
    let mut text = String::new();
    if settings.is_empty() {
        return text;
    }
    text.push_str(
        "\nsettings last until reboot; use --persist instead of --apply, or add these lines\n",
    );
    for setting in settings.iter().map(PersistedSetting::from) {
        line(&mut text, &format!("  {}: {}", setting.file(), setting.line()));
    }
    text
}

/// Appends one line to `text`, with control characters escaped.
fn line(text: &mut String, line: &str) {
    writeln!(text, "{}", Name(line)).ok();
}

/// Appends `words` to `text`, wrapped at [`WIDTH`]. The first line begins with `first`, every other
/// line with `others`.
fn paragraph(text: &mut String, first: &str, others: &str, words: &str) {
    let mut current = first.to_owned();
    let mut has_words = false;
    for word in words_with_units(words) {
        let is_full = current.chars().count() + 1 + word.chars().count() > WIDTH;
        if has_words && is_full {
            line(text, &current);
            others.clone_into(&mut current);
            has_words = false;
        }
        if has_words {
            current.push(' ');
        }
        current.push_str(&word);
        has_words = true;
    }
    line(text, &current);
}

/// Splits text into words, but keeps a number and its unit together.
fn words_with_units(words: &str) -> Vec<String> {
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
    use crate::advice::advise;
    use crate::case::tests::{MIB, case, mount, place};
    use crate::rate::{Rate, RateSource};

    #[test]
    fn findings_are_sorted_by_severity_with_remedies() {
        let mut facts = mount("/");
        facts.options.push("nobarrier".to_owned());
        let mut slow = place(facts);
        slow.rate = Rate::exactly(20 * MIB, RateSource::Measured);
        let case = case(vec![slow]);
        let findings = advise(&case);
        let text = text(&case, &findings);
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}\n{text}"));
        assert!(at("writeback and stalls") < at("risk of data loss"));
        assert!(at("by hand: mount -o remount,barrier /") < at("avoidable delays"));
        at("    --apply sets vm.dirty_background_bytes: 10 % (by ratio) → 16777216 (16 MiB)\n");
        at("    see: J. Corbet");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 20), "{text}");
        let keep = persist(&crate::advice::settings(&findings));
        assert!(keep.contains("/etc/sysctl.d/90-haul.conf: vm.dirty_bytes = 100663296"), "{keep}");
    }

    #[test]
    fn well_configured_machine_has_no_recommendations() {
        let case = case(vec![place(mount("/"))]);
        assert!(text(&case, &[]).ends_with("\nno recommendations\n"));
        assert_eq!(persist(&[]), "");
    }

    #[test]
    fn long_words_and_control_characters_are_handled() {
        let mut text = String::new();
        let long = "x".repeat(120);
        paragraph(&mut text, "- ", "  ", &format!("a {long} b\n\u{1b}[31m"));
        assert_eq!(text, format!("- a\n  {long}\n  b\\n\\u{{1b}}[31m\n"));
        assert_eq!(
            words_with_units("up to 4.4 GiB take 89 s: 5"),
            ["up", "to", "4.4 GiB", "take", "89 s:", "5"]
        );
    }
}
