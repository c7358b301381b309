//! Fills the disk, damages the store, and executes the remedies.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::operator::SERVER;
use super::{Block, Operator};
use crate::program::files_below;

/// Puts numbered objects until one is rejected; prints its number and the status.
const FILL: &str = "
test -e /tmp/object || head --bytes 3M /dev/urandom >/tmp/object
for number in $(seq 1000); do
    status=$(curl --silent --output /tmp/answer --write-out '%{http_code}' \\
        --upload-file /tmp/object $SERVER/full/$number)
    [ $status = 200 ] || break
done
echo $number $status
cat /tmp/answer
";

/// Fills the disk, frees space by deletion and compaction, and enlarges the disk.
pub(super) fn full_disk(operator: &Operator, blocks: Vec<Block>) {
    let [look, compact] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    operator.start_empty();
    assert_eq!(operator.put("full", ""), 200);
    let fill = || machine.shell(&FILL.replace("$SERVER", SERVER));
    let answer = fill();
    assert!(answer.contains(" 507\n") && answer.contains("XHaulStorageFull"), "{answer}");
    let count: u32 = answer.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 30, "{answer}");
    let printed = operator.run_lines(&look, &[1, 0]);
    assert!(printed.contains("problem  free space"), "{printed}");
    for name in ["haul_store_free_bytes ", "haul_volume_dead_bytes ", "haul_object_bytes "] {
        assert!(printed.lines().any(|line| line.starts_with(name)), "no {name} in {printed}");
    }

    let delete = format!("{SERVER}/full/[1-{}]", count / 2);
    machine.run(&["curl", "--fail", "--silent", "--request", "DELETE", &delete]);
    operator.run(&compact);
    let same = format!("curl --fail --silent {SERVER}/full/{} | cmp - /tmp/object", count - 1);
    machine.shell(&same);
    let answer = fill();
    let again: u32 = answer.split(' ').next().unwrap().parse().unwrap();
    assert!(again > count / 3 && answer.contains(" 507\n"), "{answer}");

    machine.run(&["rm", "/var/lib/haul/not-yet"]);
    let put = format!("{SERVER}/full/after");
    let answer = operator.curl(&["--upload-file", "/tmp/object", &put]);
    assert_eq!(answer.0, 200, "{}", answer.1);
    operator.start_empty();
}

/// Takes from the server the right to create files, and returns it.
pub(super) fn refused_files(operator: &Operator, blocks: Vec<Block>) {
    let [look] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    operator.start_empty();
    assert_eq!(operator.put("bucket", ""), 200);
    let objects = "/var/lib/haul/store/objects";
    let put = || operator.curl(&["--upload-file", "/tmp/big", &format!("{SERVER}/bucket/big")]);
    machine.shell("head --bytes 20M /dev/urandom >/tmp/big");
    machine.run(&["chmod", "0500", objects]);
    let (status, answer) = put();
    assert!(status == 503 && !answer.contains("/var/lib"), "{status} {answer}");
    let (_, health) = operator.health();
    assert!(health.starts_with("degraded: ") && health.contains("Permission denied"), "{health}");
    // The server looks once a second for what fails; the journal has failures of earlier sections.
    machine
        .shell("until journalctl -u haul-serve --grep 'cannot work.*big_obj'; do sleep 0.2; done");
    let printed = operator.run(&look);
    assert!(printed.contains("cannot work") && printed.contains(objects), "{printed}");

    machine.run(&["chmod", "0700", objects]);
    let is_stored = || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        put().0 == 200
    };
    assert!((0..50).any(|_| is_stored()), "the server goes on by itself");
    let (_, health) = operator.health();
    assert!(!health.contains("Permission denied"), "{health}");
}

/// Uses up the quota of a bucket, and raises it.
pub(super) fn quota(operator: &Operator, blocks: Vec<Block>) {
    let [look, raise] = blocks.try_into().unwrap();
    operator.start_empty();
    assert_eq!(operator.put("photos", ""), 200);
    let small = "<QuotaConfiguration><Bytes>4</Bytes></QuotaConfiguration>";
    assert_eq!(operator.put("photos?quota=", small), 200);
    assert_eq!(operator.put("photos/key", "hello"), 403);
    let printed = operator.run(&look);
    for part in [
        "haul_s3_quota_refused_total 1\n",
        "haul_s3_bucket_quota_bytes{bucket=\"photos\"} 4\n",
        "<Bytes>4</Bytes><UsedBytes>0</UsedBytes>",
    ] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
    operator.run(&raise);
    assert_eq!(operator.put("photos/key", "hello"), 200);
}

/// A webhook that accepts all messages.
const WEBHOOK: &str = r#"
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:9990", Listen => 5, ReuseAddr => 1);
while (my $client = $server->accept) {
    my $text = "";
    while (sysread($client, my $part, 65536)) {
        $text .= $part;
        my ($length) = $text =~ /content-length: (\d+)/i;
        last if $text =~ /\r\n\r\n/ && length($text) >= $+[0] + $length;
    }
    syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    close $client;
}
"#;

/// Queues an event for a target that is down, and starts the target.
pub(super) fn events(operator: &Operator, blocks: Vec<Block>) {
    let [look, retry] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    let (targets, config) = ("/etc/haul/events.toml", "/etc/haul/serve.toml");
    machine.write(targets, "[webhook.orders]\nurl = \"http://127.0.0.1:9990/\"\n");
    machine.shell(&format!("chown haul {targets}; chmod 600 {targets}"));
    let before = machine.text(config);
    machine.write(config, format!("event-targets = \"{targets}\"\n{before}"));
    operator.start_empty();
    assert_eq!(operator.put("photos", ""), 200);
    let rule = "<NotificationConfiguration><QueueConfiguration><Queue>arn:haul:sqs:::orders</Queue>\
                <Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>";
    assert_eq!(operator.put("photos?notification=", rule), 200);
    assert_eq!(operator.put("photos/key", "hello"), 200);
    // The command exits with 1 while a target fails.
    let wait_for = |text: &str, meanwhile: &str| {
        let printed = "$(haul events || true)";
        let wait = format!("until [[ {printed} == *'{text}'* ]]; do {meanwhile}; sleep 0.2; done");
        machine.run(&["timeout", "60", "bash", "-c", &wait]);
    };
    wait_for("failing", "true");
    let (_, health) = operator.health();
    assert!(health.starts_with("degraded: ") && health.contains("orders"), "{health}");
    let printed = operator.run_lines(&look, &[1, 0]);
    assert!(printed.contains("orders: 1 queued") && printed.contains("cannot be delivered"));

    machine.write("/srv/admin/webhook.pl", WEBHOOK);
    machine.run(&["systemd-run", "--unit", "webhook", "perl", "/srv/admin/webhook.pl"]);
    // It exits with 1 unless an attempt has succeeded meanwhile.
    operator.shell(&format!("{} || true", retry.text().trim_end()), 0);
    wait_for("orders: 0 queued (0 B), 1 delivered, 0 dropped", "haul events --retry");
    machine.run(&["systemctl", "stop", "webhook"]);
    machine.write(config, before);
    machine.run(&["rm", targets]);
    operator.start_empty();
}

/// Returns the volume in a directory that contains the bytes, and their last place in it.
fn find(dir: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let mut volumes = files_below(dir);
    volumes.retain(|file| file.extension().is_some_and(|extension| extension == "segment"));
    let found = volumes.into_iter().find_map(|file| {
        let content = std::fs::read(&file).unwrap();
        let at = content.windows(bytes.len()).rposition(|window| window == bytes)?;
        Some((file, at as u64))
    });
    found.expect("the bytes are in one of the volumes")
}

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// The lengths of the two heads before the names of an object in a volume.
const HEADS: [u64; 2] = [34, 32];

/// Damages the content of one object, and all records of another one. Replaces the first, and accepts
/// the loss of the second.
pub(super) fn damage(operator: &Operator, blocks: Vec<Block>) {
    let [verify, start, accept] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    operator.start_empty();
    for (path, content) in [
        ("bucket", ""),
        ("bucket/listed", "the content of the listed object"),
        ("bucket/unknown", "old"),
        ("bucket/unknown", "new"),
        ("bucket/good", "good"),
    ] {
        assert_eq!(operator.put(path, content), 200, "{path}");
    }
    machine.run(&["systemctl", "stop", "haul-serve"]);
    let volumes = machine.path("/var/lib/haul/store/volumes");
    let (volume, at) = find(&volumes, b"the content of the listed object");
    flip(&volume, at);
    let (volume, at) = find(&volumes, b"bucketunknown");
    let [head, outer] = HEADS;
    flip(&volume, at - head);
    flip(&volume, at - head - outer);
    let index = volume.with_extension("index");
    std::fs::remove_file(index).unwrap();

    machine.run(&["systemctl", "start", "haul-serve"]);
    let (status, error) = operator.get("bucket/listed");
    let name = volume.file_name().unwrap().to_str().unwrap();
    assert!(status == 500 && error.contains("damaged") && !error.contains(name), "{error}");
    let log = machine.shell("journalctl --unit haul-serve --grep 'a request failed'");
    assert!(log.contains(name) && log.contains("offset"), "{log}");
    assert_eq!(operator.get("bucket/unknown").0, 500);
    assert_eq!(operator.get("bucket/good"), (200, "good".to_owned()));
    let health = operator.health().1;
    assert!(health.starts_with("degraded: "), "{health}");

    let found = operator.run_lines(&verify, &[0, 1]);
    assert!(found.contains("damaged: bucket/listed: ") && found.contains(name), "{found}");
    operator.run(&start);
    assert_eq!(operator.put("bucket/listed", "the same again"), 200);
    operator.run(&accept);
    assert_eq!(operator.get("bucket/listed"), (200, "the same again".to_owned()));
    assert_eq!(operator.get("bucket/unknown"), (200, "old".to_owned()));
    assert_eq!(operator.put("bucket/unknown", "newest"), 200);
    println!("{:?}", operator.health());
}
