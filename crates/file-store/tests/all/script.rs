//! Random workloads, and a simple model of the expected content of a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use haul_file_store::{
    Attributes, Etag, Expiry, Lifecycle, LifecycleRule, NewObject, Precondition, Result, Store,
};
use haul_testing::Random;
use md5::{Digest, Md5};

use crate::contents::{Contents, UploadContents, order, pairs};
use crate::script_inputs::{Lengths, attributes, content, lifecycle, pick, setting};
use crate::start_put::block_on;

pub(crate) type Content = Arc<[u8]>;

/// An operation of a workload.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    CreateBucket { bucket: String, settings: Attributes },
    DeleteBucket(String),
    Put { bucket: String, key: String, bytes: Content, attributes: Attributes },
    PutMany { bucket: String, objects: Vec<(String, Content, Attributes)> },
    Delete { bucket: String, keys: Vec<String> },
    Copy { from: (String, String), to: (String, String) },
    Start { bucket: String, key: String, attributes: Attributes },
    Part { upload: String, number: u16, bytes: Content },
    Complete { upload: String, numbers: Vec<u16> },
    Abort { upload: String },
    SetLifecycle { bucket: String, lifecycle: Lifecycle },
    Set { bucket: String, name: String, value: Option<String> },
    Expire { bucket: String },
    Compact,
}

#[derive(Debug, Clone)]
struct Upload {
    bucket: String,
    key: String,
    attributes: Attributes,
    parts: BTreeMap<u16, Content>,
}

/// The expected content of a store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    buckets: BTreeMap<String, BTreeMap<String, (Content, Attributes)>>,
    uploads: BTreeMap<String, Upload>,
    /// The lifecycles of buckets with rules.
    lifecycles: BTreeMap<String, Lifecycle>,
    /// The settings of buckets that have some.
    settings: BTreeMap<String, Attributes>,
}

impl Act {
    fn set(bucket: String, random: &mut Random) -> Self {
        let (name, value) = setting(random);
        Self::Set { bucket, name, value }
    }

    /// Returns `true` if the act changes several objects, each of which is atomic on its own.
    pub(crate) fn is_divisible(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::PutMany { .. } | Self::Expire { .. })
    }
}

impl Model {
    /// Returns the expired keys of a bucket.
    fn expired(&self, bucket: &str) -> Vec<String> {
        let rules = self.lifecycles.get(bucket).map_or(&[][..], |lifecycle| &lifecycle.rules);
        let has_expired = |key: &&String| {
            let applies = |rule: &LifecycleRule| {
                let is_past = rule.expire == Some(Expiry::At(UNIX_EPOCH));
                rule.enabled && is_past && key.starts_with(&rule.prefix)
            };
            rules.iter().any(applies)
        };
        self.buckets[bucket].keys().filter(has_expired).cloned().collect()
    }

    /// Returns a random act that is valid in the current state.
    pub(crate) fn plan(&self, random: &mut Random, lengths: Lengths) -> Act {
        let buckets: Vec<&String> = self.buckets.keys().collect();
        let new_bucket = format!("bucket-{}", random.below(4));
        if buckets.is_empty() || (random.below(60) == 0 && !self.buckets.contains_key(&new_bucket))
        {
            return Act::CreateBucket { bucket: new_bucket, settings: attributes(random) };
        }
        let bucket = (*pick(random, &buckets)).clone();
        let key = format!("key/{:02}", random.below(12));
        let keys: Vec<&String> = self.buckets[&bucket].keys().collect();
        let uploads: Vec<&String> = self.uploads.keys().collect();
        let some_upload = (!uploads.is_empty()).then(|| (*pick(random, &uploads)).clone());
        match (random.below(64), some_upload) {
            (0..8, _) if !keys.is_empty() => {
                Act::Delete { bucket, keys: vec![(*pick(random, &keys)).clone()] }
            }
            (8..10, _) => {
                let keys = (0..12).map(|n| format!("key/{n:02}")).filter(|_| random.below(2) == 0);
                Act::Delete { bucket, keys: keys.collect() }
            }
            (10..15, _) if !keys.is_empty() => {
                let to = ((*pick(random, &buckets)).clone(), key);
                Act::Copy { from: (bucket, (*pick(random, &keys)).clone()), to }
            }
            (15..17, _) if uploads.len() < 4 => {
                Act::Start { bucket, key, attributes: attributes(random) }
            }
            (17..23, Some(upload)) => {
                let number = u16::try_from(1 + random.below(5)).unwrap();
                Act::Part { upload, number, bytes: content(random, Lengths::Short) }
            }
            (23..25, Some(upload)) => {
                let all = self.uploads[&upload].parts.keys().copied();
                let numbers: Vec<u16> = all.filter(|_| random.below(8) > 0).collect();
                match numbers.is_empty() {
                    true => Act::Abort { upload },
                    false => Act::Complete { upload, numbers },
                }
            }
            (25, Some(upload)) => Act::Abort { upload },
            (26, _) => Act::Compact,
            (29, _) => {
                let object = |_| {
                    let key = format!("key/{:02}", random.below(12));
                    (key, content(random, lengths), attributes(random))
                };
                Act::PutMany { bucket, objects: (0..8).map(object).collect() }
            }
            (30, _) if random.below(2) == 0 => Act::set(bucket, random),
            (30, _) => Act::SetLifecycle { bucket, lifecycle: lifecycle(random) },
            (31, _) => Act::Expire { bucket },
            (27..29, _) => {
                let empty = |bucket: &&&String| {
                    self.buckets[**bucket].is_empty()
                        && self.uploads.values().all(|upload| upload.bucket != ***bucket)
                };
                match buckets.iter().find(empty) {
                    Some(bucket) => Act::DeleteBucket((**bucket).clone()),
                    None => {
                        let keys = keys.into_iter().cloned().collect();
                        Act::Delete { bucket, keys }
                    }
                }
            }
            _ => {
                let (bytes, attributes) = (content(random, lengths), attributes(random));
                Act::Put { bucket, key, bytes, attributes }
            }
        }
    }

    /// Executes an act on a store. Returns the ID of a started upload.
    pub(crate) fn execute(&self, act: &Act, store: &Store) -> Result<Option<String>> {
        let none = Precondition::None;
        match act {
            Act::CreateBucket { bucket, settings } => create(store, bucket, settings)?,
            Act::DeleteBucket(bucket) => store.delete_bucket(bucket)?,
            Act::Put { bucket, key, bytes, attributes } => {
                // Both kinds of put. A random choice would change the workload.
                let started = match bytes.len() % 2 {
                    0 => store.start_put(bucket, key, bytes, attributes, &none)?,
                    _ => None,
                };
                match started {
                    Some(pending) => drop(block_on(pending)?),
                    None => drop(store.put(bucket, key, bytes, attributes, &none)?),
                }
            }
            Act::PutMany { bucket, objects } => {
                let objects: Vec<NewObject<'_>> = objects
                    .iter()
                    .map(|(key, bytes, attributes)| NewObject {
                        key,
                        bytes,
                        attributes,
                        precondition: &none,
                    })
                    .collect();
                for outcome in store.put_many(bucket, &objects) {
                    drop(outcome?);
                }
            }
            Act::Delete { bucket, keys } => {
                let named: Vec<&str> = keys.iter().map(String::as_str).collect();
                for (key, outcome) in keys.iter().zip(store.delete_many(bucket, &named)) {
                    assert_eq!(outcome?, self.buckets[bucket].contains_key(key), "{key}");
                }
            }
            Act::Copy { from, to } => {
                drop(store.copy((&from.0, &from.1), (&to.0, &to.1), None, &none)?);
            }
            Act::Start { bucket, key, attributes } => {
                return store.start_upload(bucket, key, attributes).map(Some);
            }
            Act::Part { upload, number, bytes } => {
                let Upload { bucket, key, .. } = &self.uploads[upload];
                let mut writer = store.part_writer(bucket, Some(bytes.len() as u64))?;
                writer.write(bytes)?;
                let written = writer.finish()?;
                store.put_part(bucket, key, upload, *number, written, &Attributes::new())?;
            }
            Act::Complete { upload, numbers } => {
                let Upload { bucket, key, parts, .. } = &self.uploads[upload];
                let named: Vec<(u16, Etag)> =
                    numbers.iter().map(|number| (*number, etag(&parts[number]))).collect();
                let more = Attributes::new();
                store.complete_upload(bucket, key, upload, &named, &more, &none)?;
            }
            Act::Abort { upload } => {
                let Upload { bucket, key, .. } = &self.uploads[upload];
                store.abort_upload(bucket, key, upload)?;
            }
            Act::SetLifecycle { bucket, lifecycle } => store.set_lifecycle(bucket, lifecycle)?,
            Act::Set { bucket, name, value } => {
                store.set_bucket_setting(bucket, name, value.as_deref())?;
            }
            Act::Expire { bucket } => {
                let report = store.expire_now(bucket)?;
                assert_eq!(report.expired_objects, self.expired(bucket).len() as u64);
            }
            Act::Compact => drop(store.compact()?),
        }
        Ok(None)
    }

    /// Applies an act to the model.
    pub(crate) fn apply(&mut self, act: &Act, started: Option<String>) {
        match act.clone() {
            Act::CreateBucket { bucket, settings } => {
                if settings.bytes() > 0 {
                    self.settings.insert(bucket.clone(), settings);
                }
                self.buckets.insert(bucket, BTreeMap::new());
            }
            Act::DeleteBucket(bucket) => {
                self.buckets.remove(&bucket);
                self.lifecycles.remove(&bucket);
                self.settings.remove(&bucket);
            }
            Act::Put { bucket, key, bytes, attributes } => {
                self.objects(&bucket).insert(key, (bytes, attributes));
            }
            Act::PutMany { bucket, objects } => {
                let objects = objects.into_iter();
                let objects = objects.map(|(key, bytes, attributes)| (key, (bytes, attributes)));
                self.objects(&bucket).extend(objects);
            }
            Act::Delete { bucket, keys } => {
                self.objects(&bucket).retain(|key, _| !keys.contains(key));
            }
            Act::Copy { from, to } => {
                let object = self.buckets[&from.0][&from.1].clone();
                self.objects(&to.0).insert(to.1, object);
            }
            Act::Start { bucket, key, attributes } => {
                let id = started.unwrap_or_else(|| "unacknowledged".to_owned());
                let parts = BTreeMap::new();
                self.uploads.insert(id, Upload { bucket, key, attributes, parts });
            }
            Act::Part { upload, number, bytes } => {
                let upload =
                    self.uploads.get_mut(&upload).expect("the act was planned for this state");
                upload.parts.insert(number, bytes);
            }
            Act::Complete { upload, numbers } => {
                let upload =
                    self.uploads.remove(&upload).expect("the act was planned for this state");
                let bytes: Vec<u8> =
                    numbers.iter().flat_map(|number| upload.parts[number].to_vec()).collect();
                let object = (bytes.into(), upload.attributes);
                self.objects(&upload.bucket).insert(upload.key, object);
            }
            Act::Abort { upload } => drop(self.uploads.remove(&upload)),
            Act::SetLifecycle { bucket, lifecycle } => match lifecycle.rules.is_empty() {
                true => drop(self.lifecycles.remove(&bucket)),
                false => drop(self.lifecycles.insert(bucket, lifecycle)),
            },
            Act::Set { bucket, name, value } => {
                let settings = self.settings.entry(bucket.clone()).or_default();
                match value {
                    Some(value) => settings.set(name, value),
                    None => drop(settings.remove(&name)),
                }
                if settings.bytes() == 0 {
                    self.settings.remove(&bucket);
                }
            }
            Act::Expire { bucket } => {
                let keys = self.expired(&bucket);
                self.objects(&bucket).retain(|key, _| !keys.contains(key));
            }
            Act::Compact => {}
        }
    }

    fn objects(&mut self, bucket: &str) -> &mut BTreeMap<String, (Content, Attributes)> {
        self.buckets.get_mut(bucket).expect("the act was planned for this state")
    }

    /// Returns `true` if a crash during an act may leave this state. Of several objects, a prefix
    /// may be stored.
    pub(crate) fn allows_crash(&self, act: Option<&Act>, seen: &Contents) -> bool {
        let Some(Act::PutMany { bucket, objects }) = act else {
            return self.after(act, seen).is_some();
        };
        (0..=objects.len()).any(|stored| {
            let (mut after, objects) = (self.clone(), objects[..stored].to_vec());
            after.apply(&Act::PutMany { bucket: bucket.clone(), objects }, None);
            after.seen() == *seen
        })
    }

    /// Returns the model of a state that a failed act may leave: any of several objects may be
    /// deleted or stored. `None` if the act cannot leave this state.
    pub(crate) fn after(&self, act: Option<&Act>, seen: &Contents) -> Option<Self> {
        if self.seen() == *seen {
            return Some(self.clone());
        }
        let mut act = act?.clone();
        if let Act::Expire { bucket } = &act {
            act = Act::Delete { bucket: bucket.clone(), keys: self.expired(bucket) };
        }
        if let Act::Delete { bucket, keys } = &mut act {
            let here = seen.objects.get(bucket);
            keys.retain(|key| here.is_none_or(|objects| !objects.contains_key(key)));
        }
        if let Act::PutMany { bucket, objects } = &mut act {
            let here = seen.objects.get(bucket);
            objects.retain(|(key, bytes, attributes)| {
                let found = here.and_then(|objects| objects.get(key));
                found.is_some_and(|found| found.0 == **bytes && found.1 == *attributes)
            });
        }
        let mut after = self.clone();
        after.apply(&act, None);
        Some(after).filter(|after| after.seen() == *seen)
    }

    pub(crate) fn seen(&self) -> Contents {
        let objects = |objects: &BTreeMap<String, (Content, Attributes)>| {
            let object = |(key, (bytes, attributes)): (&String, &(Content, Attributes))| {
                (key.clone(), (bytes.to_vec(), attributes.clone()))
            };
            objects.iter().map(object).collect()
        };
        let objects = self.buckets.iter().map(|(name, all)| (name.clone(), objects(all))).collect();
        let upload = |upload: &Upload| {
            let Upload { bucket, key, attributes, parts } = upload.clone();
            let part = |(number, bytes): (u16, Content)| (number, bytes.len() as u64, etag(&bytes));
            (bucket, key, pairs(&attributes), parts.into_iter().map(part).collect())
        };
        let mut uploads: Vec<UploadContents> = self.uploads.values().map(upload).collect();
        uploads.sort_by(order);
        let (lifecycles, settings) = (self.lifecycles.clone(), self.settings.clone());
        Contents { objects, uploads, lifecycles, settings }
    }
}

fn etag(bytes: &[u8]) -> Etag {
    Etag { md5: Md5::digest(bytes).into(), parts: 0 }
}

fn create(store: &Store, bucket: &str, settings: &Attributes) -> Result<()> {
    store.create_bucket_with(bucket, &settings.clone().into())
}
