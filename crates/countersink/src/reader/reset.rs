//! Resetting metrics from outside.
//!
//! The only thing here that maps a region and writes to it, as the program itself does: what a mapping
//! that becomes shorter does to a process is a risk that only a reset takes, and only where nobody
//! else can make it shorter.

use countersink_percpu::Slots;

use super::entries::{self, Entry, Form};
use super::header::Changing;
use super::model::{Buckets, Labels, Value};
use super::problems::Problems;
use super::text::full_name;
use super::{ReadError, Region, os};
use crate::layout::histogram;
use crate::values::Then;

/// Why metrics were not reset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// A core file, memory read through `/proc`, or a region in memory.
    #[error("{0} can be read, but not reset")]
    ReadOnly(String),
    /// Only the owner and root may, and only where nobody else can make it shorter; or this process
    /// lacks the memory, or the region's clock.
    #[error("{origin} cannot be reset: {why}")]
    Denied {
        /// The region.
        origin: String,
        /// A sentence.
        why: String,
    },
    /// Nothing has one of the names.
    #[error("nothing in {origin} is named {name}")]
    NoSuchName {
        /// The region.
        origin: String,
        /// The name.
        name: String,
    },
    /// A gauge, or a batch or tree counter: it says how things are, not how often they were.
    #[error("{0} goes up and down, so only its program can set it")]
    Gauge(String),
    /// It is not there any more, or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What a metric held when it was reset.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// What it held. Times of spans are in nanoseconds.
    pub value: Value,
}

impl Region {
    /// Makes metrics begin at 0 again: those whose name, whose group's name, or whose name with labels,
    /// as [`full_name`] writes it, is one of these; all if there are none. Gauges, batch
    /// and tree counters are left alone. What they held is returned; what is counted meanwhile is in that or stays, exactly. Only
    /// the owner and root may, as with files.
    ///
    /// # Errors
    ///
    /// See [`ResetError`]; nothing is reset then.
    pub fn reset(&self, names: &[&str]) -> Result<Vec<Taken>, ResetError> {
        let origin = || self.origin().to_owned();
        let entries = self.named(names)?;
        let file = self.source().file();
        let file = file.ok_or_else(|| ResetError::ReadOnly(origin()))?;
        let attached = os::attach(file).map_err(|why| ResetError::Denied {
            origin: origin(),
            why,
        })?;
        let rate = self.changing()?.ticks_per_second;
        let taken = entries.into_iter().filter_map(|entry| {
            // Dropped in between, it is not there to be reset.
            let value = attached.with(entry.number, entry.generation, |words, clock| {
                take(entry.form, words, clock, rate)
            })?;
            Some(Taken {
                name: entry.name,
                labels: entry.labels,
                value,
            })
        });
        let taken = taken.collect();
        attached.note_reset();
        Ok(taken)
    }

    fn changing(&self) -> Result<Changing, ReadError> {
        let changing = Changing::read(self.source()).map_err(|error| self.failed(error))?;
        changing.ok_or_else(|| ReadError::Gone {
            origin: self.origin().to_owned(),
        })
    }

    fn failed(&self, error: std::io::Error) -> ReadError {
        ReadError::Read {
            origin: self.origin().to_owned(),
            error,
        }
    }

    /// The entries with one of these names; all that can be taken, if there are none.
    fn named(&self, names: &[&str]) -> Result<Vec<Entry>, ResetError> {
        let used = self.changing()?.entries_used;
        let mut problems = Problems::default();
        let (source, layout) = (self.source(), self.layout());
        let mut entries = entries::read(source, layout, used, &mut problems)
            .map_err(|error| self.failed(error))?;
        entries::remove_overlaps(source, layout, &mut entries, &mut problems)
            .map_err(|error| self.failed(error))?;
        for name in names {
            let mut named = entries.iter().filter(|entry| is(entry, name)).peekable();
            if named.peek().is_none() {
                return Err(ResetError::NoSuchName {
                    origin: self.origin().to_owned(),
                    name: (*name).to_owned(),
                });
            }
            // A group may have gauges among others.
            if named.all(|entry| !entry.form.can_be_taken()) {
                return Err(ResetError::Gauge((*name).to_owned()));
            }
        }
        entries.retain(|entry| {
            let wanted = names.is_empty() || names.iter().any(|name| is(entry, name));
            wanted && entry.form.can_be_taken()
        });
        Ok(entries)
    }
}

/// Whether a name means an entry.
fn is(entry: &Entry, name: &str) -> bool {
    let is_member = || name.contains('{') && full_name(&entry.name, &entry.labels) == name;
    entry.name == name || entry.group.as_deref() == Some(name) || is_member()
}

fn take(form: Form, words: &Slots<'_>, clock: u32, rate: u64) -> Option<Value> {
    let take = Then::Take(clock);
    match form {
        Form::Counter => Some(Value::Counter(take.one(words, 0))),
        Form::Gauge | Form::Batch(_) | Form::Tree => None,
        Form::Span(grouping) => {
            let grouping = grouping.map_or(0, |grouping| grouping + 1);
            let span = take.span(words).in_nanoseconds(rate, grouping);
            Some(Value::Span(Box::new(span)))
        }
        Form::Histogram(grouping, has_sum) => Some(Value::Histogram(Buckets {
            grouping,
            sum: has_sum.then(|| take.one(words, histogram::SUM)),
            buckets: take.buckets(words, histogram::WORDS),
        })),
    }
}
