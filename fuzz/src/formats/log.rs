//! Logs whose files a target edits, and checks of what opening them delivers.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use haul_append_log::{
    Error, Log, Lsn, OnDamage, Options, Position, Reader, Recovered, SpacePriority, SyncMethod,
    Ticket, segment_name,
};
use haul_disk::Disk;
use haul_disk_sim::{Medium, MemoryDisk, Survival};

use crate::edit::Editable;
use crate::formats::segment;

/// The position and the payload of a record.
type Record = (Position, Vec<u8>);

/// A log before it is edited.
#[derive(Debug)]
pub(crate) struct LogBase {
    /// The disk of the log.
    pub(crate) medium: Medium,
    /// The segment files.
    pub(crate) files: Vec<Editable>,
    appended: BTreeMap<Lsn, Vec<u8>>,
}

/// Logs after a kill, after a clean close, and in recycled files.
pub(crate) static LOGS: LazyLock<Vec<LogBase>> = LazyLock::new(|| {
    vec![LogBase::new(false, false), LogBase::new(false, true), LogBase::new(true, true)]
});

fn options() -> Options {
    Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        idle_watermark_ms: 0,
        recovery_threads: 1,
        ..Options::default()
    }
}

/// Returns a payload of `bytes` bytes.
fn payload(number: usize, bytes: usize) -> Vec<u8> {
    let noise = (0..bytes / 8).flat_map(|at| {
        let word = u32::try_from(number << 16 | at).unwrap_or(0);
        haul_crc::crc32c(&word.to_le_bytes()).to_le_bytes()
    });
    let mut payload: Vec<u8> = noise.collect();
    payload.resize(bytes, b'x');
    payload
}

impl LogBase {
    fn new(is_recycled: bool, is_closed: bool) -> Self {
        let (options, disk) = (options(), MemoryDisk::default());
        let (log, _, _) = open(&disk, &options).unwrap();
        let put = |number: usize, bytes: usize| {
            log.append(&[&payload(number, bytes)], SpacePriority::Ordinary).unwrap().wait().unwrap()
        };
        while is_recycled && log.spare_segments() < 2 {
            for number in 1000..1020 {
                put(number, 60_000);
            }
            log.truncate_front(log.synced()).unwrap();
        }
        let first = put(0, 10);
        for number in 1..38 {
            put(number, if (10..28).contains(&number) { 60_000 } else { 30 * number });
        }
        log.truncate_front(first.lsn).unwrap();
        if is_closed {
            log.close().unwrap();
        }
        let mut medium = disk.medium().cut(Survival::Everything);
        let (_, records, _) = open(&MemoryDisk::on(&medium), &options).unwrap();
        assert!(records.len() >= 38, "{}", records.len());
        let appended = records.into_iter().map(|(at, payload)| (at.lsn, payload)).collect();
        let names: Vec<String> = medium.file_names().map(str::to_owned).collect();
        let files = names.iter().filter(|name| haul_append_log::is_segment_name(name));
        let editable = |name: &String| {
            segment::assert_checksums(name, &medium.file(name));
            let places = segment::places(&medium.file(name));
            Editable { name: name.clone(), places }
        };
        let files = files.map(editable).collect();
        Self { medium, files, appended }
    }

    /// Opens an edited log, and checks what it delivers. If `has_checksums`, the checksums were set
    /// after the edits, so that a record is what the files contain. Otherwise it is a record that
    /// was appended.
    pub(crate) fn check(&self, medium: &mut Medium, has_checksums: bool, on_damage: OnDamage) {
        let options = Options { on_damage, ..options() };
        let disk = MemoryDisk::on(medium);
        let looked_at = read_only(&disk, &options);
        let Ok((log, records, recovered)) = open(&disk, &options) else { return };
        assert!(records.is_sorted_by(|(a, _), (b, _)| a.lsn < b.lsn), "out of order or twice");
        if has_checksums {
            assert_stored(medium, &records);
        } else {
            for (at, payload) in &records {
                assert_eq!(self.appended.get(&at.lsn), Some(payload), "not appended: {at:?}");
            }
        }
        if recovered.damage.is_empty() {
            assert!(looked_at.is_ok_and(|looked_at| looked_at == records), "read-only differs");
        }
        check_reads(&log, &records);
        if !has_checksums {
            check_reader(&log, &records);
        }
        check_continuation(log, &disk, &options, records);
    }
}

/// Opens a log, and returns it with its records.
fn open(
    disk: &MemoryDisk,
    options: &Options,
) -> haul_append_log::Result<(Log, Vec<Record>, Recovered)> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    let (log, recovered) = Log::open(disk, options.clone(), &mut each)?;
    Ok((log, records, recovered))
}

fn read_only(disk: &MemoryDisk, options: &Options) -> haul_append_log::Result<Vec<Record>> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    Log::open_read_only(disk, options.clone(), &mut each).map(|_| records)
}

/// Checks that the records are in their files as they were delivered.
fn assert_stored(medium: &mut Medium, records: &[Record]) {
    let mut files = BTreeMap::new();
    for (at, payload) in records {
        let number = at.lsn.segment();
        let read = || medium.file(&segment_name(number)).clone();
        let file = files.entry(number).or_insert_with(read);
        let record = &file[at.lsn.offset() as usize..];
        assert!(record[32..].starts_with(payload), "{at:?} is not what its file contains");
    }
}

/// Checks that all ways to read return the records that were delivered when the log was opened.
fn check_reads(log: &Log, records: &[Record]) {
    for (at, payload) in records {
        assert!(log.read(*at).unwrap().payload() == payload, "{at:?} reads otherwise");
        assert!(log.read_hinted(at.lsn, 100).unwrap().payload() == payload, "{at:?} is hinted");
    }
}

/// Checks that a reader returns these records. It may return others only of records that overlap,
/// which no log has, but a file whose checksums were set after edits.
fn check_reader(log: &Log, records: &[Record]) {
    assert!(in_order(&mut log.reader(Lsn::default())) == *records, "a reader differs");
}

fn in_order(reader: &mut Reader) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        match reader.read_next() {
            Ok(Some((at, payload))) => records.push((at, payload.to_vec())),
            Ok(None) => return records,
            Err(Error::Damaged { .. }) => {}
            Err(error) => panic!("in order: {error}"),
        }
    }
}

/// Appends a record, and checks that the log then has the same records and this one.
fn check_continuation(log: Log, disk: &MemoryDisk, options: &Options, mut records: Vec<Record>) {
    let appended = log.append(&[b"appended"], SpacePriority::Ordinary).and_then(Ticket::wait);
    if let Ok(at) = appended {
        records.push((at, b"appended".to_vec()));
        log.close().unwrap();
    } else {
        drop(log);
    }
    let (_log, again, _) = open(disk, options).unwrap();
    assert!(again == records, "{} records became {}", records.len(), again.len());
}
