//! A region, and what it holds at a moment.

use std::io;

use super::error::{OpenError, ReadError};
use super::header::{self, Changing};
use super::model::{Clock, Info, Snapshot};
use super::os::{self, Holder};
use super::problems::Problems;
use super::source::{Bytes, Source};
use super::{clock, entries, values, words};
use crate::layout::Layout;

/// Whether anyone still counts in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// A process has it.
    Alive,
    /// No process that it was found with has it any more; or it is a core file, or was read into memory.
    Dead,
    /// That cannot be told.
    Unknown,
}

/// A region that has been opened, and whose header makes sense.
#[derive(Debug)]
pub struct Region {
    source: Box<dyn Source>,
    layout: Layout,
    info: Info,
    origin: String,
    id: Option<(u64, u64)>,
    holder: Holder,
}

impl Region {
    /// Checks a source's header.
    pub(super) fn new(
        source: Box<dyn Source>,
        origin: String,
        id: Option<(u64, u64)>,
        holder: Holder,
    ) -> Result<Self, OpenError> {
        let (info, layout) = header::read(source.as_ref(), &origin)?;
        Ok(Region {
            source,
            layout,
            info,
            origin,
            id,
            holder,
        })
    }

    /// A region that was read into memory. What it lacks at the end is missing.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        let source = Box::new(Bytes(bytes));
        Region::new(
            source,
            "a region in memory".to_owned(),
            None,
            Holder::Nobody,
        )
    }

    pub(super) fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// What the region says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Device and inode: processes that were forked from each other share a region. `None` for
    /// those of core files and in memory.
    pub fn id(&self) -> Option<(u64, u64)> {
        self.id
    }

    /// What it was opened as, for messages: a path, or "process 12".
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether anyone counts in it now. One or a few system calls.
    pub fn state(&self) -> State {
        os::state(&self.holder)
    }

    /// Who may have it.
    #[cfg(all(target_os = "linux", not(countersink_portable)))]
    pub(super) fn holder_mut(&mut self) -> &mut Holder {
        &mut self.holder
    }

    /// Reads all metrics.
    ///
    /// Each value is one that the metric had while it was read; a gauge comes as bounds. Takes about
    /// as long as reading 64 KiB for each CPU and 8,192 words in use, and a multiple of that where
    /// there are gauges or spans. At most 4 GiB are read.
    ///
    /// # Errors
    ///
    /// Only when the whole region is gone, or the system cannot read it. Everything else is in
    /// [`Snapshot::problems`].
    pub fn snapshot(&self) -> Result<Snapshot, ReadError> {
        let gone = || ReadError::Gone {
            origin: self.origin.clone(),
        };
        let snapshot = self.read().map_err(|error| match os::is_gone(&error) {
            true => gone(),
            false => ReadError::Read {
                origin: self.origin.clone(),
                error,
            },
        })?;
        snapshot.ok_or_else(gone)
    }

    fn read(&self) -> io::Result<Option<Snapshot>> {
        let source = self.source.as_ref();
        let mut problems = Problems::default();
        let taken = os::monotonic();
        let Some(before) = Changing::read(source)? else {
            return Ok(None);
        };
        let (is, should_be) = (source.size()?, self.layout.size());
        if is < should_be {
            problems.add(format!("of {should_be} bytes, {is} are there"));
        }
        let mut entries = entries::read(source, self.layout, before.entries_used, &mut problems)?;
        entries::remove_overlaps(source, self.layout, &mut entries, &mut problems)?;
        let mut read = words::Reader::new(source, self.layout).read(entries, &mut problems)?;
        entries::retain_alive(source, self.layout, &mut read, |read| &read.0)?;
        // Read once more: it may be older than the entries.
        let Some(after) = Changing::read(source)? else {
            return Ok(None);
        };
        let clock = Clock {
            ticks_per_second: after.ticks_per_second,
            ..self.info.clock
        };
        if self.state() == State::Alive {
            clock::check(&clock, &self.info.boot, &mut problems);
        }
        Ok(Some(Snapshot {
            taken,
            clock,
            metrics: values::metrics(read, &clock, &mut problems),
            refusals: after.refusals,
            refused: after.refused,
            resets: after.resets,
            last_reset: after.last_reset,
            problems: problems.into_sentences(),
        }))
    }
}
