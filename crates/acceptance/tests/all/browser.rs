//! Drives Chromium over its DevTools protocol: JSON messages that end with a zero byte, in two named
//! pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A page in a headless Chromium, which ends when this is dropped.
pub(crate) struct Browser {
    child: Child,
    commands: File,
    messages: BufReader<File>,
    session: Option<String>,
    last_id: u64,
    /// The errors that the page caused: exceptions, refused resources, and failed requests.
    errors: Vec<String>,
    _home: TempDir,
}

impl Browser {
    /// Starts Chromium, and opens a page of this size.
    pub(crate) fn open(url: &str, width: u32, height: u32) -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let [to, from] = ["to", "from"].map(|name| home.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let mut command = Command::new("sh");
        let script = "exec timeout 300 chromium \"$@\" 3<\"$TO\" 4>\"$FROM\"";
        command.args(["-c", script, "chromium", "--remote-debugging-pipe"]).env("TO", &to);
        command.env("FROM", &from).env("HOME", home.path());
        command.env_remove("http_proxy").env("no_proxy", "*");
        // The sandbox of Chromium requires privileges that root in a container does not have.
        command.args(["--no-sandbox", "--headless", "--disable-gpu", "--no-first-run"]);
        command.arg("--disable-dev-shm-usage").arg("about:blank");
        command.arg(format!("--user-data-dir={}", home.path().join("profile").display()));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The shell opens the pipes in the same order; each call waits for the other end.
        let commands = OpenOptions::new().write(true).open(&to).unwrap();
        let messages = BufReader::new(File::open(&from).unwrap());
        let (session, errors) = (None, Vec::new());
        let mut browser =
            Self { child, commands, messages, session, last_id: 0, errors, _home: home };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser.resize(width, height);
        browser.navigate(url);
        browser
    }

    /// Opens another page.
    pub(crate) fn navigate(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Sends this login with each request, as after a prompt of the browser.
    pub(crate) fn log_in(&mut self, access_key: &str, secret_key: &str) {
        self.call("Network.enable", json!({}));
        let pair = format!("`${{{}}}:${{{}}}`", json!(access_key), json!(secret_key));
        let basic = self.evaluate(&format!("'Basic ' + btoa({pair})"));
        let headers = json!({ "headers": { "Authorization": basic } });
        self.call("Network.setExtraHTTPHeaders", headers);
    }

    /// Changes the size of the page.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the colors that the user prefers: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Returns the value of a JavaScript expression, or of its promise.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let options =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let outcome = self.call("Runtime.evaluate", options);
        let failure = &outcome["exceptionDetails"];
        assert!(failure.is_null(), "{expression}\n{failure:#}\n{:?}", self.errors);
        outcome["result"]["value"].clone()
    }

    /// Waits until an expression has a value that is true, and returns this value. The browser may
    /// open another page meanwhile.
    pub(crate) fn wait_for(&mut self, expression: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(60);
        // A value that JavaScript takes for false is not one.
        let look = format!("(() => {{ try {{ return ({expression}) || null; }} catch {{ }} }})()");
        while Instant::now() < end {
            // The evaluation fails if the page is left meanwhile.
            let options = json!({ "expression": look, "returnByValue": true });
            match self.try_call("Runtime.evaluate", options) {
                Ok(mut outcome) if !outcome["result"]["value"].is_null() => {
                    return outcome["result"]["value"].take();
                }
                _ => thread::sleep(Duration::from_millis(30)),
            }
        }
        let shown = self.evaluate("document.body.innerText");
        panic!("not true: {expression}\n{shown}\n{:?}", self.errors);
    }

    /// Evaluates an expression that acts, once, as soon as it can be.
    fn act(&mut self, expression: &str) {
        let expression = format!(
            "new Promise((done, fail) => {{
                const end = Date.now() + 60000;
                const look = () => {{
                    let value = null;
                    try {{ value = ({expression}); }} catch {{ }}
                    if (value) return done(value);
                    if (Date.now() < end) return setTimeout(look, 30);
                    fail(new Error(\"not true: \" + document.body.innerText));
                }};
                look();
            }})"
        );
        self.evaluate(&expression);
    }

    /// Clicks an element, which a JavaScript expression returns, as soon as there is one.
    pub(crate) fn click(&mut self, element: &str) {
        self.act(&format!("(({element}).click(), true)"));
    }

    /// Gives an input, a choice or a text area a value, as the user does.
    pub(crate) fn fill(&mut self, element: &str, value: &str) {
        let value = json!(value);
        self.act(&format!(
            "((element) => {{
                element.value = {value};
                for (const kind of ['input', 'change']) {{
                    element.dispatchEvent(new Event(kind, {{ bubbles: true }}));
                }}
                return true;
            }})({element})"
        ));
    }

    /// Chooses files, or a folder, in an input.
    pub(crate) fn choose_files(&mut self, element: &str, paths: &[&Path]) {
        let found = self.call("Runtime.evaluate", json!({ "expression": element }));
        let object = found["result"]["objectId"].clone();
        assert!(object.is_string(), "{element}: {found}");
        let options = json!({ "objectId": object, "files": paths });
        self.call("DOM.setFileInputFiles", options);
    }

    /// Drags files or folders to the middle of an element, and drops them there.
    pub(crate) fn drop_files(&mut self, element: &str, paths: &[&Path]) {
        let place = self.evaluate(&format!(
            "((box) => [box.x + box.width / 2, box.y + box.height / 2])
             (({element}).getBoundingClientRect())"
        ));
        let data = json!({ "items": [], "files": paths, "dragOperationsMask": 1 });
        for kind in ["dragEnter", "dragOver", "drop"] {
            let (x, y) = (&place[0], &place[1]);
            let event = json!({ "type": kind, "x": x, "y": y, "data": data });
            self.call("Input.dispatchDragEvent", event);
        }
    }

    /// Returns the errors of the page since the last call, without requests for settings that a
    /// bucket does not have.
    pub(crate) fn take_unexpected_errors(&mut self) -> Vec<String> {
        let mut errors = self.take_errors();
        errors.retain(|error| !error.contains("the server responded with a status of 404"));
        errors
    }

    /// Presses a key: `Tab`, `Enter`, `Escape`, `Space`, or an arrow.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Space" => (32, " "),
            "ArrowLeft" => (37, ""),
            "ArrowRight" => (39, ""),
            _ => panic!("{key} has no code"),
        };
        let name = if key == "Space" { " " } else { key };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": name, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Returns the errors of the page since the last call.
    pub(crate) fn take_errors(&mut self) -> Vec<String> {
        // Messages of earlier events arrive before the response.
        self.evaluate("0");
        std::mem::take(&mut self.errors)
    }

    /// Saves a picture of the page in the directory `HAUL_SCREENSHOTS`, if it is set.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(dir) = std::env::var_os("HAUL_SCREENSHOTS") else { return };
        let options = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", options);
        let path = Path::new(&dir).join(name);
        let mut decode = Command::new("base64");
        decode.arg("-d").stdin(Stdio::piped()).stdout(File::create(path).unwrap());
        let mut decode = decode.spawn().unwrap();
        let base64 = picture["data"].as_str().unwrap().as_bytes();
        decode.stdin.take().unwrap().write_all(base64).unwrap();
        assert!(decode.wait().unwrap().success());
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let outcome = self.try_call(method, parameters);
        outcome.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut text = Vec::new();
            self.messages.read_until(0, &mut text).unwrap();
            assert_eq!(text.pop(), Some(0), "Chromium ended; errors: {:?}", self.errors);
            let mut message: Value = serde_json::from_slice(&text).unwrap();
            if message["id"] == self.last_id {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            match message["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    self.errors.push(message["params"]["exceptionDetails"].to_string());
                }
                Some("Log.entryAdded") => {
                    let entry = &message["params"]["entry"];
                    // Chromium requests an icon for responses without HTML.
                    let is_icon =
                        entry["url"].as_str().is_some_and(|url| url.ends_with("/favicon.ico"));
                    if entry["level"] == "error" && !is_icon {
                        self.errors.push(entry.to_string());
                    }
                }
                _ => {}
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // SIGTERM, which `timeout` passes on to Chromium.
        Command::new("kill").arg(self.child.id().to_string()).status().ok();
        self.child.wait().ok();
    }
}
