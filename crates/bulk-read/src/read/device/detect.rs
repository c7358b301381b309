//! Detects the kind of the devices of files before they are read.

use haul_disk::{
    DeviceKind, KIND_SAMPLES, KindSource, PAGE_BYTES, ReadSample, measure_kind, resident,
    sample_places,
};

use super::group::{Device, Group, groups};
use crate::read::open::Opener;
use crate::read::options::ReadOptions;
use crate::read::plan::{self, Item};
use crate::read::request::ReadRequest;
use crate::tree::{FileId, Tree};

/// Returns the kind of the devices of `files`. The kind is configured in `options`, reported by the
/// kernel, or measured by a few direct reads. Returns `None` if a device cannot be measured, for
/// example because all files are cached, or if the devices differ in kind.
///
/// A measurement reads two pages of a rotational disk, and one of them again.
#[must_use]
pub fn device_kind(
    tree: &Tree,
    files: impl Iterator<Item = FileId>,
    options: &ReadOptions<'_>,
) -> Option<DeviceKind> {
    let requests: Vec<_> = files.map(ReadRequest::whole).collect();
    let mut kinds = groups(tree, &requests).into_iter().map(|group| {
        let known = known_kind(options, &group.device);
        known.or_else(|| measure_group(tree, &requests, group)).map(|(kind, _)| kind)
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

/// Returns the kind of a device if it is known without a measurement.
pub(in crate::read) fn known_kind(
    options: &ReadOptions<'_>,
    device: &Device,
) -> Option<(DeviceKind, KindSource)> {
    let by_number = |(number, _): &&(u64, DeviceKind)| device.numbers.contains(number);
    let configured = options.kinds.iter().find(by_number).map(|(_, kind)| *kind);
    match (configured.or(options.kind), device.rotational) {
        (Some(kind), _) => Some((kind, KindSource::Configured)),
        (None, Some(true)) => None,
        (None, _) => Some((DeviceKind::SolidState, KindSource::KernelFlag)),
    }
}

fn measure_group(
    tree: &Tree,
    requests: &[ReadRequest],
    group: Group,
) -> Option<(DeviceKind, KindSource)> {
    let mut items = group.items;
    plan::by_inode(&mut items, requests);
    let lengths = items.iter().map(|item| item.bytes);
    let file = |item: &Item| item.of(requests).file;
    let places: Vec<_> = sample_places(lengths, KIND_SAMPLES)
        .into_iter()
        .map(|(index, offset)| (file(&items[index]), offset))
        .collect();
    // If all samples are cached, most files are, and the kind of the device hardly matters.
    let mut opener = Opener::new(tree);
    let mut is_cached = |(file, offset): &(FileId, u64)| {
        let Ok((fd, _)) = opener.open(*file) else { return true };
        resident(&fd, *offset, PAGE_BYTES as u64).is_ok_and(|pages| pages.resident_bytes > 0)
    };
    if places.iter().all(&mut is_cached) {
        return None;
    }
    measure(tree, &places)
}

/// Measures the kind of a device with reads at the places `at`. Returns `None` if the places are
/// too few or too close to each other, or if the file system does not support direct reads.
pub(in crate::read) fn measure(
    tree: &Tree,
    at: &[(FileId, u64)],
) -> Option<(DeviceKind, KindSource)> {
    let mut opener = Opener::new(tree);
    let sample = |(file, offset): &(FileId, u64)| {
        let (fd, _) = opener.open_direct(*file)?;
        ReadSample::new(fd, *offset)
    };
    measure_kind(at.iter().filter_map(sample).collect())
}
