//! What one measurement of one contender came to, and how it is told to another process.

use serde_json::{Map, Value as Json, json};

use crate::stats::Latencies;

/// What one measurement of one contender came to. Numbers that could not be had are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Records appended, each durable when its call returned.
    pub appends: f64,
    /// How long it took.
    pub seconds: f64,
    /// The time one append took: half of them took no longer.
    pub p50_us: Option<f64>,
    /// 99 of 100 took no longer.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took no longer.
    pub p999_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// Time of processors, kernel and program, of all threads of the process.
    pub cpu_seconds: Option<f64>,
    /// Read requests at the device, whoever made them.
    pub device_reads: Option<f64>,
    /// Write requests at the device without those that only empty its cache.
    pub device_writes: Option<f64>,
    /// Bytes written to the device.
    pub device_bytes: Option<f64>,
    /// Times the device's write cache was emptied.
    pub device_syncs: Option<f64>,
    /// Groups of records made durable together.
    pub commits: Option<f64>,
    /// Bytes handed to the kernel for them.
    pub padded_bytes: Option<f64>,
    /// How long it took, once the writers had stopped, to do what had been put off.
    pub finish_seconds: Option<f64>,
    /// Time of processors for that.
    pub finish_cpu_seconds: Option<f64>,
    /// Write requests at the device for that.
    pub finish_writes: Option<f64>,
}

impl Sample {
    /// Appends in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.appends / self.seconds
    }

    /// Appends in a second, where what was put off counts too.
    #[must_use]
    pub fn rate_to_the_end(&self) -> f64 {
        self.appends / (self.seconds + self.finish_seconds.unwrap_or(0.0))
    }

    /// `number` for each append.
    #[must_use]
    pub fn each(&self, number: Option<f64>) -> Option<f64> {
        number.map(|number| number / self.appends)
    }

    pub(crate) fn with_latencies(self, times: &Latencies) -> Self {
        Self {
            p50_us: times.percentile_us(50.0),
            p99_us: times.percentile_us(99.0),
            p999_us: times.percentile_us(99.9),
            max_us: times.max_us(),
            ..self
        }
    }

    /// One line of JSON, which [`Sample::from_json`] understands.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut all = Map::new();
        let mut copy = self.clone();
        for (key, number) in copy.members() {
            all.insert(key.to_owned(), json!(number));
        }
        all.insert("appends".to_owned(), json!(self.appends));
        all.insert("seconds".to_owned(), json!(self.seconds));
        Json::Object(all).to_string()
    }

    /// What [`Sample::to_json`] told; `None` where that is something else.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let (appends, seconds) = (json["appends"].as_f64()?, json["seconds"].as_f64()?);
        let mut sample = Self { appends, seconds, ..Self::default() };
        for (key, number) in sample.members() {
            *number = json[key].as_f64();
        }
        Some(sample)
    }

    fn members(&mut self) -> [(&'static str, &mut Option<f64>); 14] {
        [
            ("p50_us", &mut self.p50_us),
            ("p99_us", &mut self.p99_us),
            ("p999_us", &mut self.p999_us),
            ("max_us", &mut self.max_us),
            ("cpu_seconds", &mut self.cpu_seconds),
            ("device_reads", &mut self.device_reads),
            ("device_writes", &mut self.device_writes),
            ("device_bytes", &mut self.device_bytes),
            ("device_syncs", &mut self.device_syncs),
            ("commits", &mut self.commits),
            ("padded_bytes", &mut self.padded_bytes),
            ("finish_seconds", &mut self.finish_seconds),
            ("finish_cpu_seconds", &mut self.finish_cpu_seconds),
            ("finish_writes", &mut self.finish_writes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_is_told_every_number() {
        let mut sample = Sample { appends: 1000.0, seconds: 0.5, ..Sample::default() };
        for (at, (_, number)) in sample.members().into_iter().enumerate() {
            // One of them is not known.
            *number = (at != 3).then_some(at as f64 + 0.25);
        }
        let told = sample.to_json();
        assert!(!told.contains('\n'));
        assert_eq!(Sample::from_json(&told), Some(sample));
    }

    #[test]
    fn what_is_no_sample_is_not_taken_for_one() {
        for text in ["", "{}", "[]", "panicked", r#"{"appends": 1}"#, r#"{"appends":"1"}"#] {
            assert_eq!(Sample::from_json(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_told_for_each_append() {
        let sample = Sample {
            appends: 100.0,
            seconds: 2.0,
            device_writes: Some(50.0),
            commits: Some(25.0),
            ..Sample::default()
        };
        assert!((sample.rate() - 50.0).abs() < 1e-9);
        assert!((sample.rate_to_the_end() - 50.0).abs() < 1e-9);
        let put_off = Sample { finish_seconds: Some(3.0), ..sample.clone() };
        assert!((put_off.rate_to_the_end() - 20.0).abs() < 1e-9);
        assert_eq!(sample.each(sample.device_writes), Some(0.5));
        assert_eq!(sample.each(sample.device_reads), None);
    }
}
