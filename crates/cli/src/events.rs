//! `haul events`: shows the queues of a server's event targets.

use std::thread;
use std::time::{Duration, Instant};

use haul_s3_server::Credentials;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::admin_client::{AdminAddress, Question};
use crate::args::EventsArgs;
use crate::output::print_line;
use crate::report::{Failure, Result};
use crate::secrets::credentials;
use crate::units::{Bytes, Count};

/// The interval at which a server is asked whether its targets have been tried again.
const POLL_TIME: Duration = Duration::from_millis(200);

/// Prints a line for each target. Fails if a target accepts no events. A retry ends when each
/// failing target has been tried.
pub(crate) fn run(args: &EventsArgs) -> Result {
    let client = Client { args, credentials: credentials::load(args.credentials.as_deref())? };
    let targets = if args.retry { client.retry()? } else { client.targets(Method::GET)? };
    if targets.is_empty() && !args.json {
        return print_line("the server has no event targets");
    }
    for target in &targets {
        if args.json { print_line(target)? } else { print_line(line(target))? }
    }
    match targets.iter().any(|target| !target["error"].is_null()) {
        true => Err(Failure::reported()),
        false => Ok(()),
    }
}

/// Asks the server of a command line.
struct Client<'a> {
    args: &'a EventsArgs,
    credentials: Option<Credentials>,
}

impl Client<'_> {
    /// Returns the targets. A POST also asks for a retry.
    fn targets(&self, method: Method) -> Result<Vec<Value>> {
        let args = self.args;
        let path = if method == Method::POST { "/events/retry" } else { "/events.json" };
        let address = AdminAddress::parse(&args.url, path)?;
        let cannot = || format!("cannot ask {} for its event targets", args.url);
        let question = Question {
            method,
            credentials: self.credentials.clone(),
            timeout: args.timeout,
            is_insecure: args.insecure,
        };
        let (status, text) = address.ask(&question, &cannot)?;
        match status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(self.not_logged_in(&cannot())),
            _ => {
                let why = format!("{}: {}: {}", cannot(), status.as_u16(), text.trim());
                return Err(Failure::new(why));
            }
        }
        let targets: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("{}: {error}", cannot())))?;
        Ok(targets.as_array().cloned().unwrap_or_default())
    }

    fn not_logged_in(&self, cannot: &str) -> Failure {
        let Some(Credentials { access_key, .. }) = &self.credentials else {
            return Failure::new(format!("{cannot}: the server asks for a key"))
                .advise("give one with --credentials");
        };
        let advice = match &self.args.credentials {
            Some(file) => format!("check the two keys in {}", file.display()),
            None => "check HAUL_ACCESS_KEY and HAUL_SECRET_KEY".to_owned(),
        };
        Failure::new(format!("{cannot}: the server rejected the key {access_key}")).advise(advice)
    }

    /// Asks for a retry, and returns the targets after it. Waits for each attempt, and for one that
    /// had begun before, as long as both may take.
    fn retry(&self) -> Result<Vec<Value>> {
        let mut targets = self.targets(Method::POST)?;
        let is_retrying = |target: &&Value| target["retrying"] == true;
        let timeouts = targets.iter().filter(is_retrying);
        let timeout = timeouts.filter_map(|it| it["timeout_s"].as_f64()).fold(0.0, f64::max);
        let time = Duration::try_from_secs_f64(2.0 * timeout + 1.0).unwrap_or_default();
        let begun = Instant::now();
        while targets.iter().any(|target| is_retrying(&target)) && begun.elapsed() < time {
            thread::sleep(POLL_TIME);
            targets = self.targets(Method::GET)?;
        }
        Ok(targets)
    }
}

fn line(target: &Value) -> String {
    let number = |name: &str| target[name].as_u64().unwrap_or_default();
    let text = |name: &str| target[name].as_str().unwrap_or_default();
    if target["configured"] == false {
        return unknown_line(target);
    }
    let mut line = format!(
        "{}: {} queued ({}), {} delivered, {} dropped, {}",
        text("name"),
        number("queued_events"),
        Bytes(number("queued_bytes")),
        number("delivered_events"),
        number("dropped_events"),
        Count(number("failures"), "failure"),
    );
    if let Some(error) = target["error"].as_str() {
        line += &format!("\n  failing: {error}");
    }
    line
}

/// Returns the line of a target that the server does not have.
fn unknown_line(target: &Value) -> String {
    let number = |name: &str| target[name].as_u64().unwrap_or_default();
    let mut line = format!(
        "{}: {} queued ({}), {} dropped, {}",
        target["name"].as_str().unwrap_or_default(),
        number("queued_events"),
        Bytes(number("queued_bytes")),
        number("dropped_events"),
        target["error"].as_str().unwrap_or_default(),
    );
    let buckets = target["buckets"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let buckets: Vec<_> = buckets.collect();
    if !buckets.is_empty() {
        line += &format!("\n  named by the notification of: {}", buckets.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_has_the_queue_and_the_failure() {
        let target = json!({
            "name": "orders", "queued_events": 3, "queued_bytes": 900, "delivered_events": 12,
            "dropped_events": 0, "failures": 1, "error": "it did not answer in time",
        });
        let expected = "orders: 3 queued (900 B), 12 delivered, 0 dropped, 1 failure\n  failing: it \
                        did not answer in time";
        assert_eq!(line(&target), expected);
        let unknown = json!({
            "name": "orders", "configured": false, "buckets": ["photos"], "queued_events": 20,
            "queued_bytes": 900, "dropped_events": 2, "error": "the server has no such target",
        });
        let expected = "orders: 20 queued (900 B), 2 dropped, the server has no such target\n  \
                        named by the notification of: photos";
        assert_eq!(line(&unknown), expected);
    }
}
