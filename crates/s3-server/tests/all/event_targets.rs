//! Event targets that are down, slow or hostile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_testing::eventually;
use serde_json::Value;

use crate::events::{Site, parse, texts};

/// Sets a flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `body` while another thread stores an object in each interval. Returns their number.
fn while_writing(site: &Site, interval: Duration, body: impl FnOnce()) -> u64 {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let number = count.fetch_add(1, Ordering::SeqCst);
                site.put(&format!("/bucket/{number:05}"), b"");
                thread::sleep(interval);
            }
        });
        // Also if `body` panics: the thread would be waited for.
        let _stop = Stop(&stop);
        body();
    });
    count.load(Ordering::SeqCst)
}

#[test]
fn full_queue_is_delivered_to_a_target_that_recovers_while_writes_go_on() {
    let site = Site::with(|webhook| webhook.queue_events_max = 5);
    site.receiver.answer_with(500);
    site.notify();
    let mut records: Vec<Value> = Vec::new();
    let puts = while_writing(&site, Duration::from_millis(100), || {
        thread::sleep(Duration::from_secs(4));
        assert!(site.status("dropped_events") > 0);
        // After pauses of 0.1 to 1.6 s.
        let failures = site.status("failures");
        assert!((3..10).contains(&failures), "{failures}");
        site.receiver.answer_with(200);
        site.retry();
        let recovered = Instant::now();
        eventually("events are delivered", || site.status("delivered_events") > 0);
        assert!(recovered.elapsed() < Duration::from_secs(2), "{:?}", recovered.elapsed());
        // The queue may still be too long at first.
        thread::sleep(Duration::from_millis(1500));
        let before = site.status("dropped_events");
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(site.status("dropped_events"), before, "a healthy target gets all events");
    });
    records.extend(site.records(1));
    assert_eq!(site.status("dropped_events") + site.status("delivered_events"), puts);
    let texts = texts(&records);
    assert!(texts.is_sorted(), "{texts:?}");
    assert_eq!(records.len() as u64, site.status("delivered_events"), "each once");
}

#[test]
fn queue_of_a_slow_target_has_its_limit() {
    let site = Site::with(|webhook| (webhook.queue_events_max, webhook.batch_max) = (10, 1));
    site.receiver.answer_after(Duration::from_millis(300));
    site.notify();
    let mut longest = 0;
    let puts = while_writing(&site, Duration::from_millis(50), || {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(7) {
            longest = longest.max(site.status("queued_events"));
            thread::sleep(Duration::from_millis(20));
        }
    });
    // The limit is exceeded by the events of about one second, and of a message.
    assert!((10..60).contains(&longest), "{longest} of {puts}");
    site.receiver.answer_after(Duration::ZERO);
    let texts = texts(&site.records(1));
    assert!(texts.is_sorted(), "{texts:?}");
    let (dropped, delivered) = (site.status("dropped_events"), site.status("delivered_events"));
    assert!(dropped > 0 && delivered > 10, "{dropped} {delivered}");
    assert_eq!(dropped + delivered, puts);
}

#[test]
fn server_stops_without_delivering_all_events() {
    let site = Site::new();
    site.receiver.answer_with(503);
    site.notify();
    (0..50).for_each(|number| site.put(&format!("/bucket/{number:02}"), b""));
    let mut site = site.restart_with(|webhook| webhook.batch_max = 1);
    site.receiver.answer_after(Duration::from_millis(300));
    site.receiver.answer_with(200);
    site.retry();
    eventually("an event is delivered", || site.status("delivered_events") > 0);
    let started = Instant::now();
    site.server.join();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let delivered = |site: &Site| -> Vec<Value> {
        site.receiver.take().iter().flat_map(|message| parse(&message.body)).collect()
    };
    let mut records = delivered(&site);
    assert!(records.len() < 25, "{}", records.len());
    site.receiver.answer_after(Duration::ZERO);
    let site = site.restart_with(|_webhook| {});
    records.extend(site.records(1));
    assert_eq!(records.len(), 50, "each once");
}

/// Answers one message with a body that does not end. Returns the bytes that were sent until the
/// connection was closed.
fn answer_without_end(listener: &TcpListener, status: u16) -> u64 {
    let mut reader = BufReader::new(listener.accept().unwrap().0);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let mut stream = reader.into_inner();
    let head = format!("HTTP/1.1 {status} Status\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    let mut sent = 0;
    while stream.write_all(&chunk).is_ok() && sent < 1 << 30 {
        sent += chunk.len() as u64;
    }
    sent
}

#[test]
fn response_without_an_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let site = Site::with(|webhook| webhook.url = url);
    site.notify();
    site.put("/bucket/key", b"");
    // What the buffers of the kernel take, and no more.
    for status in [500, 200] {
        let sent = answer_without_end(&listener, status);
        assert!(sent < 64 << 20, "{sent} bytes");
    }
    eventually("the event is delivered", || site.status("delivered_events") == 1);
    assert_eq!(site.status("failures"), 1);
}
