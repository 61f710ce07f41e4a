//! The region's header.

use std::time::Duration;

use super::error::OpenError;
use super::model::{Clock, ClockKind, Info, Kind, Mechanism, Refusal};
use super::source::{Source, fill};
use crate::layout::{self, BYTE_ORDER, ENTRY, HEADER, Layout, MAGIC, UNIT, VERSION, header};

/// Numbers at offsets of bytes; what lies outside reads as 0.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.bytes(at, N).try_into().unwrap_or([0; N])
    }

    pub(super) fn bytes(self, at: usize, length: usize) -> &'a [u8] {
        let end = at.saturating_add(length);
        self.0.get(at..end).unwrap_or_default()
    }

    pub(super) fn u16(self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_ne_bytes(self.array(at))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        u64::from_ne_bytes(self.array(at))
    }

    /// A text that is padded with zeros.
    fn text(self, at: usize, length: usize) -> String {
        let bytes = self.bytes(at, length);
        let end = bytes.iter().position(|byte| *byte == 0);
        let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// Reads and checks the part that does not change.
pub(super) fn read(source: &dyn Source, origin: &str) -> Result<(Info, Layout), OpenError> {
    let not_region = |why: String| OpenError::NotRegion {
        origin: origin.to_owned(),
        why,
    };
    let failed = |error| OpenError::Open {
        origin: origin.to_owned(),
        error,
    };
    let mut bytes = vec![0; HEADER];
    let there = fill(source, &mut bytes, 0).map_err(failed)?;
    let fields = Fields(&bytes);
    if there < HEADER {
        return Err(not_region(format!(
            "it has {there} bytes, fewer than a header"
        )));
    }
    // A memfd has its size before it has anything else.
    if fields.bytes(header::MAGIC, 8) == [0; 8] && fields.u32(header::READY) == 0 {
        return Err(OpenError::NotReady {
            origin: origin.to_owned(),
        });
    }
    if fields.bytes(header::MAGIC, 8) != MAGIC {
        return Err(not_region("it does not begin with CSINKREG".to_owned()));
    }
    match fields.u32(header::BYTE_ORDER) {
        BYTE_ORDER => {}
        // Nothing but magic, version and byte order is stored before the rest is complete.
        0 if fields.u32(header::READY) == 0 => {
            return Err(OpenError::NotReady {
                origin: origin.to_owned(),
            });
        }
        other if other.swap_bytes() == BYTE_ORDER => {
            return Err(not_region(
                "it comes from a machine with another byte order".to_owned(),
            ));
        }
        other => return Err(not_region(format!("its byte order reads as {other:#010x}"))),
    }
    if fields.u32(header::VERSION) != VERSION {
        return Err(OpenError::OtherVersion {
            origin: origin.to_owned(),
            version: fields.u32(header::VERSION),
        });
    }
    match fields.u32(header::READY) {
        1 => {}
        0 => {
            return Err(OpenError::NotReady {
                origin: origin.to_owned(),
            });
        }
        other => return Err(not_region(format!("its ready field is {other}"))),
    }
    let layout = check_layout(fields).map_err(not_region)?;
    if source.size().map_err(failed)? > layout.size() {
        return Err(not_region("it is longer than it says".to_owned()));
    }
    let info = info(fields, layout).map_err(not_region)?;
    Ok((info, layout))
}

/// The layout, if all fields that follow from each other agree.
fn check_layout(fields: Fields<'_>) -> Result<Layout, String> {
    let cpus = fields.u32(header::CPUS);
    let entries = fields.u32(header::ENTRIES);
    let segments = fields.u32(header::SEGMENTS);
    let layout = Layout::new(cpus, entries, segments).ok_or_else(|| {
        format!("{cpus} CPUs, {entries} entries and {segments} segments are not possible")
    })?;
    let numbers = [
        ("stride", u64::from(fields.u32(header::STRIDE)), UNIT),
        (
            "number of index groups",
            u64::from(fields.u32(header::GROUPS)),
            u64::from(layout.groups()),
        ),
        (
            "size of an entry",
            u64::from(fields.u32(header::ENTRY_SIZE)),
            ENTRY as u64,
        ),
        (
            "offset of the index",
            fields.u64(header::INDEX_OFFSET),
            layout.index(),
        ),
        (
            "offset of the entries",
            fields.u64(header::ENTRIES_OFFSET),
            layout.entries_offset(),
        ),
        (
            "offset of the segments",
            fields.u64(header::SEGMENTS_OFFSET),
            layout.segments_offset(),
        ),
        (
            "size of a segment",
            fields.u64(header::SEGMENT_SIZE),
            layout.segment_size(),
        ),
        ("size", fields.u64(header::SIZE), layout.size()),
    ];
    for (what, is, should_be) in numbers {
        if is != should_be {
            return Err(format!("its {what} is {is} and should be {should_be}"));
        }
    }
    Ok(layout)
}

fn info(fields: Fields<'_>, layout: Layout) -> Result<Info, String> {
    let library = fields.u32(header::LIBRARY);
    Ok(Info {
        pid: fields.u32(header::PID),
        uid: fields.u32(header::UID),
        start_time: fields.u64(header::START_TIME),
        pid_namespace: fields.u64(header::PID_NAMESPACE),
        boot: fields.array(header::BOOT),
        program: fields.text(header::PROGRAM, header::PROGRAM_LENGTH),
        library: [library >> 16, library >> 8 & 0xff, library & 0xff],
        mechanism: match fields.u32(header::MECHANISM) {
            1 => Mechanism::Rseq,
            2 => Mechanism::LockedLanes,
            3 => Mechanism::ThreadLanes,
            other => return Err(format!("mechanism {other} is not known")),
        },
        mechanism_reason: fields.text(header::REASON, header::REASON_LENGTH),
        hindrance: fields.text(header::HINDRANCE, header::HINDRANCE_LENGTH),
        kind: match fields.u32(header::KIND) {
            1 => Kind::Memfd,
            2 => Kind::File,
            3 => Kind::Private,
            other => return Err(format!("kind {other} is not known")),
        },
        cpus: layout.cpus,
        entries: layout.entries,
        segments: layout.segments,
        clock: Clock {
            kind: match fields.u32(header::CLOCK) {
                1 => ClockKind::Cycles,
                2 => ClockKind::CyclesOfEachCpu,
                3 => ClockKind::Monotonic,
                other => return Err(format!("clock {other} is not known")),
            },
            ticks_per_second: fields.u64(header::TICKS_PER_SECOND),
            ticks: fields.u64(header::CLOCK_TICKS),
            nanoseconds: fields.u64(header::CLOCK_NANOSECONDS),
        },
        created: Duration::from_nanos(fields.u64(header::CREATED)),
    })
}

/// The part of the header that changes.
#[derive(Debug)]
pub(super) struct Changing {
    pub(super) entries_used: u64,
    pub(super) resets: u64,
    pub(super) last_reset: Duration,
    pub(super) ticks_per_second: u64,
    pub(super) refusals: Vec<Refusal>,
    pub(super) refused: u64,
}

impl Changing {
    /// Reads it; `None` where it is not there.
    pub(super) fn read(source: &dyn Source) -> std::io::Result<Option<Self>> {
        let mut bytes = vec![0; HEADER];
        if fill(source, &mut bytes, 0)? < HEADER {
            return Ok(None);
        }
        let fields = Fields(&bytes);
        let counts =
            (0..header::REFUSAL_REASONS).map(|reason| fields.u64(header::REFUSALS + 8 * reason));
        Ok(Some(Changing {
            entries_used: fields.u64(header::ENTRIES_USED),
            resets: fields.u64(header::RESETS),
            last_reset: Duration::from_nanos(fields.u64(header::LAST_RESET)),
            ticks_per_second: fields.u64(header::TICKS_PER_SECOND),
            refusals: refusals(fields),
            refused: counts.fold(0, u64::saturating_add),
        }))
    }
}

/// The records that are complete.
fn refusals(fields: Fields<'_>) -> Vec<Refusal> {
    let records =
        (0..header::REFUSED_COUNT).map(|record| header::REFUSED + record * header::REFUSED_SIZE);
    records
        .filter(|at| fields.u32(*at) == 2)
        .map(|at| Refusal {
            name: fields.text(at + header::REFUSED_NAME, header::REFUSED_NAME_LENGTH),
            reason: crate::region::Refusal::text(fields.u32(at + 4)).to_owned(),
            times: fields.u64(at + 8),
        })
        .collect()
}

/// Where an entry begins.
pub(super) fn entry_offset(layout: Layout, entry: u32) -> u64 {
    layout.entries_offset() + u64::from(entry) * layout::ENTRY as u64
}
