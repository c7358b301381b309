//! Formats the results of a run as one HTML page, which refers to no other file. Performs no I/O.

mod disk_charts;
mod html;
mod ratio_chart;
mod seek_chart;
mod svg;
mod tables;
mod timeline_chart;

use haul_disk_sim::Parameters;

use self::html::{element, escaped, text};
use self::ratio_chart::{Axis, ratio_chart, strip};
use super::claim::{Answer, Judgement, Text};
use super::{Run, counts};

const STYLE: &str = include_str!("style.css");

impl Run {
    /// Returns the page: the disk in one line, the numbers of answers, charts, a card for each
    /// claim, what is missing, and the raw tables.
    #[must_use]
    pub fn page(&self) -> String {
        let judgements = self.judgements();
        let axis = Axis::of(&judgements);
        let wide = element("div", "wide", &ratio_chart(&judgements, axis));
        let cards: String = Text::ALL.map(|text| section(text, &judgements, axis)).concat();
        let body = [
            self.head(&judgements),
            self.charts(),
            heading("Claims of five texts, tested on this disk"),
            wide,
            cards,
            self.missing_parts(),
            self.raw(),
            text("footer", "", NOTE),
        ];
        let title = self.title();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escaped(&title),
            body.concat()
        )
    }

    fn title(&self) -> String {
        let storage = self.host.storage.first();
        let device = storage.and_then(|it| it.device.as_deref()).unwrap_or("an unknown device");
        let file_system = storage.map_or("storage", |it| it.file_system.as_str());
        format!("{file_system} on {device}: what this disk can do")
    }

    fn head(&self, judgements: &[Judgement]) -> String {
        let mut out = text("h1", "", "This disk in one line");
        if let Some(line) = self.line() {
            let facts: String = line.split(" · ").map(|fact| text("li", "", fact)).collect();
            out += &element("ul", "facts", &facts);
            out += &text("p", "paste", &line);
        }
        out += &text("p", "run", &self.circumstances.to_string());
        let host = self.host.to_string();
        out += &host.lines().map(|line| text("p", "run", line)).collect::<String>();
        let answers = Answer::ALL.into_iter().zip(counts(judgements));
        let answers = answers.map(|(answer, count)| {
            let count = text("dd", answer.class(), &count.to_string());
            element("div", "", &(text("dt", "", answer.heading()) + &count))
        });
        element("header", "", &(out + &element("dl", "counts", &answers.collect::<String>())))
    }

    fn charts(&self) -> String {
        let mut charts = String::new();
        if let Some(disk) = &self.disk {
            charts += &disk_charts::depths(disk);
            charts += &disk_charts::latencies(disk);
        }
        charts += &timeline_chart::timeline_chart(&self.timelines);
        let is_simulated = |name: &str| self.reports.iter().any(|report| report.bench == name);
        if is_simulated("read-order") || is_simulated("random-write") {
            let drive = Parameters::all().into_iter().find(|it| it.name.starts_with("deskstar"));
            charts += &drive.map(|drive| seek_chart::seek_chart(&drive)).unwrap_or_default();
        }
        match charts.is_empty() {
            true => charts,
            false => heading("The disk") + &element("div", "pair", &charts),
        }
    }

    fn missing_parts(&self) -> String {
        if self.missing.is_empty() {
            return String::new();
        }
        let item = |it: &super::Missing| text("li", "", &format!("{}: {}", it.part, it.why));
        let items: String = self.missing.iter().map(item).collect();
        heading("Not measured") + &element("ul", "", &items)
    }

    fn raw(&self) -> String {
        let details: String = self.reports.iter().map(tables::details).collect();
        match details.is_empty() {
            true => details,
            false => heading("All figures") + &details,
        }
    }
}

const NOTE: &str = "A ratio is the median of the ratios of interleaved rounds. Its interval contains \
    the true median with a probability of at least 90 %. It is noise if the interval contains 1, or \
    if the rounds of one method differ from each other as much. A claim holds if the whole interval \
    is in the range of the claim, and does not hold if no part of it is. Made by haul bench all.";

fn heading(title: &str) -> String {
    text("h2", "", title)
}

fn section(subject: Text, judgements: &[Judgement], axis: Axis) -> String {
    let own = judgements.iter().filter(|it| it.claim.text == subject);
    let cards: String = own.map(|judgement| card(judgement, axis)).collect();
    heading(subject.title()) + &element("div", "pair", &cards)
}

fn card(judgement: &Judgement, axis: Axis) -> String {
    let answer = judgement.answer;
    let badge = format!("{} {}", answer.sign(), answer.heading());
    let figures = text("dt", "", "Text")
        + &text("dd", "", judgement.claim.figure)
        + &text("dt", "", "Here")
        + &text("dd", "", &judgement.figure());
    let content = text("p", &format!("answer {}", answer.class()), &badge)
        + &text("h3", "", judgement.claim.sentence)
        + &element("dl", "figures", &figures)
        + &strip(judgement, axis)
        + &text("p", "meaning", &judgement.meaning);
    element("article", "card", &content)
}

impl Answer {
    /// Returns the class of the colour.
    const fn class(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Undecided => "unknown",
        }
    }

    /// Returns a sign, so that the colour is not the only difference.
    const fn sign(self) -> &'static str {
        match self {
            Self::Yes => "✓",
            Self::No => "✗",
            Self::Undecided => "?",
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Yes => "Holds here",
            Self::No => "Does not hold here",
            Self::Undecided => "Undecided here",
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::super::Missing;
    use super::super::claim::judge;
    use super::super::claims::claims;
    use super::super::disk::tests::figures;
    use super::super::part::Part;
    use super::*;
    use crate::host::Host;
    use crate::report::{Circumstances, Column, Ratio, Report, Row, Samples, Value};
    use crate::write_modes::timeline::{RequestKind, Timeline, TracedRequest};

    const EVIL: &str = "<script>alert(\"&'1'\")</script>";

    /// Returns reports with a ratio for each claim except the last one: of them, one is an amount,
    /// and every third one is noise.
    fn reports() -> Vec<Report> {
        let mut reports: Vec<Report> = Vec::new();
        for (number, claim) in claims().enumerate().take(claims().count() - 1) {
            let name = claim.part.name();
            let at = reports.iter().position(|it| it.bench == name).unwrap_or_else(|| {
                let columns = [Column::text("way", EVIL), Column::number("us", "µs", 1)];
                reports.push(Report::new(name, Host::default(), columns, "us"));
                reports.len() - 1
            });
            let a = [3.0, 3.1, if number % 3 == 0 { 0.5 } else { 3.2 }, 3.3, 3.1];
            let (a, b) = (Samples::new(EVIL, a), Samples::new("b", [1.0; 5]));
            let ratio =
                if claim.part == Part::Journal { Ratio::amount(a) } else { Ratio::of(a, b) };
            reports[at].ratio(claim.ratio, ratio);
        }
        let values = vec![EVIL.into(), Value::Number(1.5)];
        reports[0].rows.push(Row::new(EVIL, "", values));
        let missing = Row::new(EVIL, "", vec![EVIL.into()]).without_numbers(EVIL);
        reports[0].rows.push(missing);
        reports[0].notes.push(EVIL.to_owned());
        reports
    }

    pub(in super::super) fn judgements() -> Vec<Judgement> {
        judge(claims(), &reports(), |_| None)
    }

    pub(super) fn timelines() -> Vec<Timeline> {
        let request = |at_us, kind, bytes| TracedRequest { at_us, kind, bytes };
        let append = vec![
            request(60, RequestKind::Data, 4096),
            request(200, RequestKind::Journal, 16_384),
            request(300, RequestKind::Sync, 0),
            request(500, RequestKind::Journal, 4096),
            request(600, RequestKind::Sync, 0),
        ];
        let filled = vec![request(60, RequestKind::Data, 4096), request(90, RequestKind::Sync, 0)];
        vec![
            Timeline { name: "append", requests: append, end_us: 800 },
            Timeline { name: "filled", requests: filled, end_us: 300 },
        ]
    }

    fn run() -> Run {
        Run {
            circumstances: Circumstances { command: EVIL.to_owned(), ..Circumstances::default() },
            host: Host { cpu: Some(EVIL.to_owned()), ..Host::default() },
            is_quick: true,
            disk: Some(figures()),
            timelines: timelines(),
            reports: reports(),
            missing: vec![Missing { part: Part::Log, why: EVIL.to_owned() }],
        }
    }

    #[test]
    fn page_is_well_formed_and_has_a_card_for_each_claim() {
        let page = run().page();
        assert_well_formed(&page);
        assert_eq!(page.matches("<article class=\"card\">").count(), claims().count());
        for claim in claims() {
            assert!(page.contains(&escaped(claim.sentence)), "{}", claim.sentence);
        }
        for chart in ["depths", "latencies", "journal", "seeks", "ratios"] {
            assert_eq!(
                page.matches(&format!("<figure class=\"chart\" id=\"{chart}\">")).count(),
                1
            );
        }
        assert!(page.contains("Not measured") && page.contains("log: &lt;script&gt;"));
    }

    #[test]
    fn page_escapes_all_text_and_refers_to_nothing_outside() {
        let page = run().page();
        assert!(!page.contains("<script"), "escaped");
        assert!(page.matches("&lt;script&gt;").count() >= 6);
        for reference in ["http:", "https:", "//", "url(", "@import", "src=", "href="] {
            assert!(!page.contains(reference), "{reference}");
        }
        assert!(page.len() < 400_000, "{} B", page.len());
    }

    #[test]
    fn page_without_results_is_well_formed() {
        let empty = Run {
            disk: None,
            timelines: Vec::new(),
            reports: Vec::new(),
            missing: Vec::new(),
            ..run()
        };
        let page = empty.page();
        assert_well_formed(&page);
        assert_eq!(page.matches("? Undecided here").count(), claims().count());
        assert!(empty.json().contains("\"line\": null"), "{}", empty.json());
        assert!(empty.text(80).contains("30 are undecided"), "{}", empty.text(80));
    }

    #[test]
    fn text_has_the_line_and_an_answer_to_each_claim() {
        let text = run().text(100);
        assert!(text.starts_with("ext4 on vda (reports itself as spinning"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let answers = text.lines().filter(|line| {
            ["  yes", "  no ", "  ?  "].iter().any(|answer| line.starts_with(answer))
        });
        assert_eq!(answers.count(), claims().count());
    }
}
