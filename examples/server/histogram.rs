//! Counts of durations, in buckets that are at most 1/32 wide of what they hold.

use std::time::Duration;

/// Buckets a power of two.
const STEPS: u64 = 32;

/// A histogram of latencies.
#[derive(Clone, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    max: Duration,
}

impl Histogram {
    pub(crate) fn add(&mut self, latency: Duration) {
        let bucket = bucket(latency.as_nanos() as u64);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.max = self.max.max(latency);
    }

    pub(crate) fn add_all(&mut self, other: &Histogram) {
        self.counts
            .resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.max = self.max.max(other.max);
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn max(&self) -> Duration {
        self.max
    }

    /// The latency that the fraction `q` of all stayed within.
    pub(crate) fn quantile(&self, q: f64) -> Duration {
        let rank = (self.count() as f64 * q).ceil().max(1.0) as u64;
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        bucket.map_or(self.max, |bucket| {
            Duration::from_nanos(upper(bucket)).min(self.max)
        })
    }
}

/// Values below [`STEPS`] have a bucket each, others as many buckets a power of two.
fn bucket(value: u64) -> usize {
    let shift = (value | STEPS).ilog2() - STEPS.ilog2();
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value in `bucket`.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let step = bucket - shift * STEPS;
    ((step + 1) << shift) - 1
}
