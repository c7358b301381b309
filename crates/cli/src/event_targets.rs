//! Reads the targets of bucket notifications from a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haul_s3_server::{EventTargets, Webhook};
use toml::de::{DeTable, DeValue};

use crate::args::ServeArgs;
use crate::report::{Exit, Failure, OrFail, Result};
use crate::secrets::file;
use crate::units::parse_time;

/// The maximum length of the file, far more than it needs for many targets.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Returns the targets of a server; one without a file still serves clients that listen. `None` for
/// a read-only server, which makes no changes.
pub(crate) fn for_server(args: &ServeArgs) -> Result<Option<Arc<EventTargets>>> {
    let cannot = || "cannot send events".to_owned();
    let targets = match args.event_targets.as_deref() {
        Some(path) => load(path)?,
        None if args.replication.read_only => return Ok(None),
        None => EventTargets::new(Vec::new()).or_not_start(cannot)?,
    };
    Ok(Some(Arc::new(targets)))
}

/// Reads the targets. Paths in the file are relative to its directory.
fn load(path: &Path) -> Result<EventTargets> {
    let cannot = || format!("cannot use the event targets in {}", path.display());
    let text = file::read_up_to(path, FILE_BYTES_MAX, &cannot)?;
    let invalid = |why: String| Failure::new(format!("{}: {why}", cannot())).exit(Exit::NotStarted);
    let dir = path.parent().unwrap_or(Path::new("."));
    let webhooks = parse(&text, dir).map_err(invalid)?;
    EventTargets::new(webhooks).or_not_start(cannot)
}

fn parse(text: &str, dir: &Path) -> std::result::Result<Vec<Webhook>, String> {
    let file = DeTable::parse(text).map_err(|error| error.to_string())?.into_inner();
    let mut webhooks = Vec::new();
    for (kind, targets) in file {
        let DeValue::Table(targets) = targets.into_inner() else { return Err(no_target()) };
        if kind.get_ref() != "webhook" {
            return Err(no_target());
        }
        for (name, options) in targets {
            let name = name.into_inner();
            let DeValue::Table(options) = options.into_inner() else {
                return Err(format!("webhook.{name} is no table"));
            };
            let read = read(&name, options, dir).map_err(|why| format!("webhook.{name}: {why}"));
            webhooks.push(read?);
        }
    }
    if webhooks.is_empty() { Err(no_target()) } else { Ok(webhooks) }
}

fn no_target() -> String {
    "it consists of tables [webhook.NAME]".to_owned()
}

fn read(name: &str, options: DeTable<'_>, dir: &Path) -> std::result::Result<Webhook, String> {
    let mut webhook = Webhook::new(name, "");
    let mut identity = [None, None];
    for (option, value) in options {
        let (option, value) = (option.into_inner(), value.into_inner());
        let text = || match &value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(format!("{option} is a string")),
        };
        let number = || match &value {
            DeValue::Integer(number) => {
                let number = u64::from_str_radix(number.as_str(), number.radix());
                number.map_err(|error| format!("{option}: {error}"))
            }
            _ => Err(format!("{option} is a number")),
        };
        let time = || -> std::result::Result<Duration, String> {
            parse_time(&text()?).map_err(|why| format!("{option}: {why}"))
        };
        let content = || {
            let path = dir.join(text()?);
            std::fs::read(&path).map_err(|error| format!("{option}: {}: {error}", path.display()))
        };
        match &*option {
            "url" => webhook.url = text()?,
            "token" => webhook.authorization = Some(format!("Bearer {}", text()?)),
            "authorization" => webhook.authorization = Some(text()?),
            "secret" => webhook.secret = Some(text()?),
            "ca" => webhook.authorities = Some(content()?),
            "client-cert" => identity[0] = Some(content()?),
            "client-key" => identity[1] = Some(content()?),
            "records" => webhook.batch_max = usize::try_from(number()?).unwrap_or(usize::MAX),
            "timeout" => webhook.timeout = time()?,
            "queue-events" => webhook.queue_events_max = number()?,
            "queue-age" => webhook.queue_age_max = Some(time()?),
            _ => {
                return Err(format!(
                    "unknown option {option}: there are url, token, authorization, secret, ca, \
                     client-cert, client-key, records, timeout, queue-events and queue-age"
                ));
            }
        }
    }
    webhook.client_identity = match identity {
        [Some(certificate), Some(key)] => Some([certificate, b"\n".to_vec(), key].concat()),
        [None, None] => None,
        _ => return Err("client-cert and client-key belong together".to_owned()),
    };
    if webhook.url.is_empty() {
        return Err("it has no url".to_owned());
    }
    Ok(webhook)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_have_their_options() {
        let text = "[webhook.orders]\nurl = \"https://example.com/hook\"\ntoken = \"t\"\n\
                    secret = \"s\"\nrecords = 1\ntimeout = \"2s\"\nqueue-events = 5\n\
                    queue-age = \"1d\"\n[webhook.audit]\nurl = \"http://localhost:1\"\n";
        let found = parse(text, Path::new(".")).unwrap();
        let names: Vec<_> = found.iter().map(|webhook| &*webhook.name).collect();
        assert_eq!(names.len(), 2);
        let orders = found.iter().find(|webhook| webhook.name == "orders").unwrap();
        assert_eq!(orders.authorization.as_deref(), Some("Bearer t"));
        assert_eq!(orders.secret.as_deref(), Some("s"));
        assert_eq!((orders.batch_max, orders.timeout), (1, Duration::from_secs(2)));
        assert_eq!(orders.queue_events_max, 5);
        assert_eq!(orders.queue_age_max, Some(Duration::from_hours(24)));
    }

    #[test]
    fn malformed_files_are_refused_with_the_reason() {
        for (text, why) in [
            ("webhook = 1", "tables [webhook.NAME]"),
            ("[kafka.a]\nurl = \"a\"", "tables [webhook.NAME]"),
            ("[webhook.a]\n", "webhook.a: it has no url"),
            ("[webhook]\na = 1", "webhook.a is no table"),
            ("[webhook.a]\nurl = 5", "url is a string"),
            ("[webhook.a]\nurl = \"a\"\nqueue-events = -1", "queue-events: invalid digit"),
            ("[webhook.a]\nurl = \"a\"\ntimeout = \"soon\"", "timeout: "),
            ("[webhook.a]\nurl = \"a\"\nuser = \"b\"", "unknown option user"),
            ("[webhook.a]\nurl = \"a\"\nclient-cert = \"/none\"", "client-cert: /none"),
            ("[webhook.a\n", "TOML parse error"),
        ] {
            let refused = parse(text, Path::new("/")).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
