//! Merges the listings of a bucket at both servers into a sequence of keys to copy or delete.

use crate::client::Client;
use crate::error::Result;
use crate::listing::Listing;
use crate::model::Key;
use crate::plan::{KeyPlan, plan_object, plan_versions};

/// A key, and what to do with it.
pub(crate) enum Planned {
    /// A key of the source, and the number of versions at the target.
    Source { key: Key, plan: KeyPlan, target_versions: usize },
    /// A key that only the target has.
    Extra { key: Key },
}

/// The bucket whose keys are compared.
pub(crate) struct Compared<'a> {
    pub(crate) from: &'a Client,
    pub(crate) to: &'a Client,
    pub(crate) bucket: &'a str,
    /// `true` to compare the versions of each key.
    pub(crate) has_versions: bool,
    /// `false` if the target has no such bucket.
    pub(crate) has_target: bool,
    /// `true` to return keys that only the target has.
    pub(crate) with_extra: bool,
}

/// The merged listings.
pub(crate) struct Planner<'a> {
    compared: &'a Compared<'a>,
    source: Listing<'a>,
    target: Option<Listing<'a>>,
    /// The next key of each listing, if it was read.
    source_key: Option<Key>,
    target_key: Option<Key>,
    is_source_read: bool,
    /// The greatest key of the source that was returned.
    greatest: String,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(compared: &'a Compared<'a>) -> Self {
        let Compared { from, to, bucket, has_versions, has_target, .. } = *compared;
        Self {
            compared,
            source: Listing::new(from, bucket, "", has_versions),
            target: has_target.then(|| Listing::new(to, bucket, "", has_versions)),
            source_key: None,
            target_key: None,
            is_source_read: false,
            greatest: String::new(),
        }
    }

    /// Returns the next key, or `None` at the end of both listings.
    pub(crate) async fn next(&mut self) -> Result<Option<Planned>> {
        loop {
            if self.source_key.is_none() && !self.is_source_read {
                self.source_key = self.source.next().await?;
                self.is_source_read = self.source_key.is_none();
            }
            if let Some(key) = self.source_key.take_if(|key| key.name < self.greatest) {
                return self.out_of_order(key).await.map(Some);
            }
            self.read_target().await?;
            match (self.source_key.take(), self.target_key.take()) {
                (None, None) => return Ok(None),
                (Some(source), Some(target)) if target.name < source.name => {
                    self.source_key = Some(source);
                    if self.compared.with_extra {
                        return Ok(Some(Planned::Extra { key: target }));
                    }
                }
                (Some(source), target) => {
                    let is_same = target.as_ref().is_some_and(|key| key.name == source.name);
                    let found = target.as_ref().filter(|_| is_same);
                    let planned = self.plan(source, found);
                    self.target_key = target.filter(|_| !is_same);
                    return Ok(Some(planned));
                }
                (None, Some(_)) if !self.compared.with_extra => return Ok(None),
                (None, Some(target)) => return Ok(Some(Planned::Extra { key: target })),
            }
        }
    }

    async fn read_target(&mut self) -> Result<()> {
        if let (None, Some(target)) = (&self.target_key, &mut self.target) {
            self.target_key = target.next().await?;
            if self.target_key.is_none() {
                self.target = None;
            }
        }
        Ok(())
    }

    fn plan(&mut self, source: Key, target: Option<&Key>) -> Planned {
        let plan = match self.compared.has_versions {
            true => plan_versions(&source, target),
            false => plan_object(&source, target),
        };
        self.greatest.clone_from(&source.name);
        let target_versions = target.map_or(0, |target| target.versions.len());
        Planned::Source { key: source, plan, target_versions }
    }

    /// Plans a key that the source lists after greater ones: some servers list the keys in the order
    /// of their directories. The target's listing is past it, so that the key is looked up.
    async fn out_of_order(&mut self, source: Key) -> Result<Planned> {
        let Compared { to, bucket, has_versions, has_target, .. } = *self.compared;
        let found = match has_target {
            true => Listing::find(to, bucket, &source.name, has_versions).await?,
            false => None,
        };
        let greatest = self.greatest.clone();
        let planned = self.plan(source, found.as_ref());
        self.greatest = greatest;
        Ok(planned)
    }
}
