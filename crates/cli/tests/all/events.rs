//! `haul events`.

use haul_testing::{WebhookReceiver, eventually};
use rustix::process::Signal;

use crate::helper::{Serving, TestDir};

const NOTIFICATION: &[u8] = b"<NotificationConfiguration><QueueConfiguration>\
    <Queue>arn:haul:sqs:::orders</Queue><Event>s3:ObjectCreated:*</Event>\
    </QueueConfiguration></NotificationConfiguration>";

fn serve(place: &TestDir, more: &[&str]) -> Serving {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    TestDir::start(&mut place.command(&[&arguments, more].concat()))
}

fn private(place: &TestDir, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = place.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn retry_shows_the_state_after_the_attempt_and_a_lost_target_its_queue() {
    let (place, receiver) = (TestDir::new(), WebhookReceiver::start());
    let targets = format!("[webhook.orders]\nurl = \"{}\"\n", receiver.url());
    private(&place, "events.toml", &targets);
    let with_targets = ["--event-targets", "events.toml", "--bucket", "photos"];
    let serving = serve(&place, &with_targets);
    let events = |serving: &Serving, more: &[&str]| {
        place.run(&[&["events", serving.address("admin")], more].concat())
    };
    assert_eq!(serving.request("PUT", "/photos?notification", NOTIFICATION).0, 200);
    receiver.answer_with(503);
    assert_eq!(serving.request("PUT", "/photos/1", b"").0, 200);
    eventually("an attempt has failed", || events(&serving, &[]).0.status.code() == Some(1));
    // It fails again: the state is that after a new attempt, however long the pause is.
    for _ in 0..4 {
        let failing = events(&serving, &["--retry", "--json"]).code(1);
        let failing: serde_json::Value = serde_json::from_str(failing.text()).unwrap();
        assert_eq!(failing["retrying"], false, "{failing}");
    }
    receiver.answer_with(200);
    let repaired = events(&serving, &["--retry"]).code(0);
    assert!(repaired.text().contains(" 1 delivered, 0 dropped, "), "{}", repaired.text());
    assert!(!repaired.text().contains("failing"), "{}", repaired.text());
    receiver.answer_with(503);
    assert_eq!(serving.request("PUT", "/photos/2", b"").0, 200);
    eventually("an attempt has failed", || events(&serving, &[]).0.status.code() == Some(1));
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));

    // Without the target, its queue and the lost events are shown.
    let mut serving = serve(&place, &[]);
    let warning = serving.stderr_line();
    assert!(warning.contains("WARN") && warning.contains("orders"), "{warning}");
    assert!(warning.contains("photos"), "{warning}");
    assert_eq!(serving.request("PUT", "/photos/3", b"").0, 200);
    let found = events(&serving, &[]).code(1);
    assert!(found.text().starts_with("orders: 1 queued ("), "{}", found.text());
    let rest =
        "), 1 dropped, the server has no such target\n  named by the notification of: photos\n";
    assert!(found.text().ends_with(rest), "{}", found.text());
    let health = place.run(&["health", serving.address("admin")]).code(0);
    let lost =
        "the event target orders, which the server does not have; events lost since the start: 1";
    assert!(health.text().contains(lost), "{}", health.text());
}

#[test]
fn server_without_targets_says_so_and_a_wrong_key_is_named() {
    let place = TestDir::new();
    let serving = place.serve();
    let none = place.run(&["events", serving.address("admin")]).code(0);
    assert_eq!(none.text(), "the server has no event targets\n");
    drop(serving);

    private(&place, "right", "admin\nadmin-secret\n");
    private(&place, "wrong", "admin\nanother-secret\n");
    let serving = serve(&place, &["--credentials", "right"]);
    let retry = |more: &[&str]| {
        place.run(&[&["events", "--retry", serving.address("admin")], more].concat())
    };
    retry(&["--credentials", "right"]).code(0);
    let rejected = ["the server rejected the key admin", "check the two keys in wrong"];
    retry(&["--credentials", "wrong"]).code(1).stderr_contains(&rejected);
    let missing = ["the server asks for a key", "give one with --credentials"];
    retry(&[]).code(1).stderr_contains(&missing);
}
