//! The files of the console: a page that draws the history of a server, and shows its metrics.

/// The content security policy of the pages: a page loads only files of its own server.
pub const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                                  connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
                                  form-action 'none'; frame-ancestors 'none'";

/// The script that adds the view of recent requests.
pub(crate) const RECENT_VIEW: &str = "/console/recent_view.js";

/// Returns the page at `/`, which loads `scripts` after the script of the console. A script is a
/// JavaScript module that adds views to the page.
#[must_use]
pub fn console_page(scripts: &[&str]) -> String {
    let element = |path: &&str| format!("<script type=\"module\" src=\"{path}\"></script>\n");
    let scripts: String = scripts.iter().map(element).collect();
    include_str!("console/page.html").replace("<!-- scripts -->\n", &scripts)
}

/// Returns the type and the text of a file that the page loads.
#[must_use]
pub fn console_file(path: &str) -> Option<(&'static str, &'static str)> {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    Some(match path {
        "/console.css" => ("text/css; charset=utf-8", include_str!("console/console.css")),
        "/console.js" => (SCRIPT, include_str!("console/console.js")),
        "/console/chart.js" => (SCRIPT, include_str!("console/chart.js")),
        "/console/elements.js" => (SCRIPT, include_str!("console/elements.js")),
        "/console/heat_map.js" => (SCRIPT, include_str!("console/heat_map.js")),
        "/console/metrics.js" => (SCRIPT, include_str!("console/metrics.js")),
        "/console/recent.js" => (SCRIPT, include_str!("console/recent.js")),
        RECENT_VIEW => (SCRIPT, include_str!("console/recent_view.js")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_loads_only_files_of_its_server() {
        let page = console_page(&["/own.js", RECENT_VIEW]);
        assert!(page.contains("<script type=\"module\" src=\"/own.js\"></script>"));
        let mut texts = vec![page];
        let mut at = 0;
        while at < texts.len() {
            let text = texts[at].clone();
            for outside in ["https://", "@import", "url(", "innerHTML", "eval("] {
                assert!(!text.contains(outside), "{outside} is in\n{text}");
            }
            let outside = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("http://"), "{text}");
            let quoted = text.split(['"', '\'']).filter(|word| word.starts_with('/'));
            let loaded = quoted.filter(|word| word.ends_with(".js") || word.ends_with(".css"));
            for path in loaded.filter(|path| *path != "/own.js") {
                let (_, file) = console_file(path).unwrap_or_else(|| panic!("{path} is missing"));
                if !texts.iter().any(|known| known == file) {
                    texts.push(file.to_owned());
                }
            }
            at += 1;
        }
        assert_eq!(texts.len(), 9, "the page, its style and seven scripts");
    }
}
