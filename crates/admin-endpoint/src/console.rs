//! The files of the console: a page that draws the history of a server, and shows its metrics.

/// The content security policy of the pages: a page loads only files of its own server.
pub const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                                  connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
                                  form-action 'none'; frame-ancestors 'none'";

/// The script that adds the view of recent requests.
pub(crate) const RECENT_VIEW: &str = "/console/recent_view.js";

/// Returns the page at `/` of the server `title` on this machine, which loads `scripts` after the
/// script of the console. A script is a JavaScript module that adds views to the page.
#[must_use]
pub fn console_page(title: &str, scripts: &[&str]) -> String {
    page(title, &host_name(), scripts)
}

/// Returns the name of the machine, by which users tell the consoles of several machines apart.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn page(title: &str, host: &str, scripts: &[&str]) -> String {
    let element = |path: &&str| format!("<script type=\"module\" src=\"{path}\"></script>\n");
    let scripts: String = scripts.iter().map(element).collect();
    include_str!("console/page.html")
        .replace("<!-- scripts -->\n", &scripts)
        .replace("<!-- title -->", &escaped(title))
        .replace("<!-- host -->", &escaped(host))
}

/// Returns text as it is written in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
        let page = page("haul", "machine", &["/own.js", RECENT_VIEW]);
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

    #[test]
    fn title_names_the_machine() {
        let page = page("haul files", "<b>&", &[]);
        assert!(page.contains("<title>&lt;b&gt;&amp; – haul files</title>"), "{page}");
        assert!(page.contains(">haul files <small>on &lt;b&gt;&amp;</small></h1>"), "{page}");
        assert!(!page.contains("<!--"), "{page}");
        assert!(console_page("haul", &[]).contains(&escaped(&host_name())));
    }
}
