//! `haul events`: shows the queues of a server's event targets.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::admin_client::{AdminAddress, Question};
use crate::args::EventsArgs;
use crate::output::print_line;
use crate::report::{Failure, Result};
use crate::secrets::credentials;
use crate::units::{Bytes, Count};

/// Prints a line for each target. Fails if a target accepts no events.
pub(crate) fn run(args: &EventsArgs) -> Result {
    let (method, path) = match args.retry {
        true => (Method::POST, "/events/retry"),
        false => (Method::GET, "/events.json"),
    };
    let address = AdminAddress::parse(&args.url, path)?;
    let cannot = || format!("cannot ask {} for its event targets", args.url);
    let question = Question {
        method,
        credentials: credentials::load(args.credentials.as_deref())?,
        timeout: args.timeout,
        is_insecure: args.insecure,
    };
    let (status, text) = address.ask(&question, &cannot)?;
    if status != StatusCode::OK {
        let failure = Failure::new(format!("{}: {}: {}", cannot(), status.as_u16(), text.trim()));
        return Err(match status {
            StatusCode::UNAUTHORIZED => failure.advise("give a key with --credentials"),
            _ => failure,
        });
    }
    let targets: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", cannot())))?;
    let targets = targets.as_array().cloned().unwrap_or_default();
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
