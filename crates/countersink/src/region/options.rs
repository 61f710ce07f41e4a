//! Where the region is to be, and where it came to be.

use core::fmt;
use core::ptr::NonNull;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::OnceLock;

use countersink_percpu::choice;

use super::{Region, existing, header, lanes, main};
use crate::clock;
use crate::layout::{self, Layout};
use crate::os::{self, Backing, Hindrance, Memory};

/// Where a region is to be, and how large.
///
/// In the environment, `COUNTERSINK_REGION` names a region to join, such as `/proc/PID/fd/N`, which comes
/// before these options; `COUNTERSINK_DIR` a directory in which to make a file, which comes after. Without any of them: a memfd.
///
/// Sizes are upper limits: less is taken where resource limits demand it. Memory is used for what was
/// touched only, except in a file, which has its full size from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A file in this directory, `PROGRAM.PID.START.countersink` (and a number where that is taken), that can be read after a crash. The
    /// directory is made if it is missing; it must be ours and closed to others (0700). Not a network
    /// file system; stores to a file on a disk can stall for hundreds of milliseconds, so prefer tmpfs.
    pub directory: Option<PathBuf>,
    /// Room for so many metrics: up to 65,536, in steps of 128; what is between is rounded up. By
    /// default 65,536, or 16,384 in a file.
    pub metrics: Option<u32>,
    /// Room for so many segments of 8,192 words: 1 to 256. By default 64, or 4 in a file.
    pub segments: Option<u32>,
}

/// Why options cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A metric was used already, or options were given before.
    #[error("the region is there already, or its options are")]
    TooLate,
    /// No region can have so many metrics or segments.
    #[error("a region has room for at most 65,536 metrics and 1 to 256 segments")]
    Size,
    /// The directory's name contains a zero byte.
    #[error("the directory's name contains a zero byte")]
    Directory,
}

/// Options as the first use needs them: nothing is allocated then.
#[derive(Debug)]
struct Chosen {
    directory: Option<CString>,
    metrics: Option<u32>,
    segments: Option<u32>,
}

static CHOSEN: OnceLock<Chosen> = OnceLock::new();

/// Says where the region is to be. Call it before any metric is used, at the start of `main`.
///
/// # Errors
/// See [`OptionsError`]; nothing changes then.
pub fn configure(options: &Options) -> Result<(), OptionsError> {
    let metrics = options.metrics.map(|metrics| {
        let rounded = metrics
            .max(layout::ENTRIES_IN_UNIT)
            .checked_next_multiple_of(layout::ENTRIES_IN_UNIT);
        rounded.unwrap_or(u32::MAX)
    });
    let segments = options.segments;
    Layout::new(
        1,
        metrics.unwrap_or(layout::ENTRIES_IN_UNIT),
        segments.unwrap_or(1),
    )
    .ok_or(OptionsError::Size)?;
    let directory = match &options.directory {
        Some(path) => Some(
            CString::new(path.as_os_str().as_encoded_bytes())
                .map_err(|_| OptionsError::Directory)?,
        ),
        None => None,
    };
    if existing().is_some() {
        return Err(OptionsError::TooLate);
    }
    let chosen = Chosen {
        directory,
        metrics,
        segments,
    };
    CHOSEN.set(chosen).map_err(|_| OptionsError::TooLate)
}

fn wanted(metrics: u32, segments: u32) -> Option<Layout> {
    let chosen = CHOSEN.get();
    let metrics = chosen.and_then(|chosen| chosen.metrics).unwrap_or(metrics);
    let segments = chosen
        .and_then(|chosen| chosen.segments)
        .unwrap_or(segments);
    Layout::new(lanes(), metrics, segments)
}

/// Makes the region of this process, or joins one.
pub(super) fn make() -> Option<NonNull<Region>> {
    let hindrance = match setting() {
        os::Setting::Join(path) => match os::join(path).and_then(joined) {
            Ok(region) => return Some(region),
            Err(hindrance) => hindrance,
        },
        os::Setting::Directory(path) => {
            match os::create_file(path, &os::identity(), wanted(16_384, 4)?, &fill) {
                Ok(memory) => return Region::made(memory, choice().mechanism, Hindrance::None),
                Err(hindrance) => hindrance,
            }
        }
        os::Setting::None => Hindrance::None,
    };
    let wanted = wanted(layout::MOST_ENTRIES, 64)?;
    let (memory, hindrance) = match os::create_memfd(wanted) {
        Ok(memory) => (memory, hindrance),
        Err(error) => {
            let hindrance = if hindrance == Hindrance::None {
                error
            } else {
                hindrance
            };
            (os::private(wanted).ok()?, hindrance)
        }
    };
    let region = Region::made(memory, choice().mechanism, hindrance)?;
    // SAFETY: just made.
    #[allow(unsafe_code)]
    unsafe { region.as_ref() }.write_header(&os::identity());
    Some(region)
}

/// A region that another process has made, if its clock is one that this process has.
fn joined(memory: Memory) -> Result<NonNull<Region>, Hindrance> {
    match Region::peek(memory) {
        Some((mechanism, clock)) if clock == clock::source().code() => {
            Region::made(memory, mechanism, Hindrance::None).ok_or(Hindrance::NotJoined)
        }
        _ => {
            os::abandon(&memory);
            Err(Hindrance::NotJoined)
        }
    }
}

/// Completes a region before others see it.
pub(super) fn fill(memory: &Memory) -> bool {
    let opened = os::open_part(memory, 0, layout::UNIT);
    if opened {
        Region::new(*memory, choice().mechanism, Hindrance::None).write_header(&os::identity());
    }
    opened
}

/// Gives back a region that another thread was faster to make.
pub(super) fn discard(memory: &Memory) {
    if memory.backing == Backing::File
        && !memory.joined
        && let os::Setting::Directory(path) = setting()
    {
        os::remove_file(path, &os::identity(), memory);
    }
    os::abandon(memory);
}

/// What was asked for: by the program, or by the environment.
fn setting() -> os::Setting {
    match CHOSEN.get().and_then(|chosen| chosen.directory.as_deref()) {
        Some(directory) => os::Setting::Directory(directory),
        None => os::setting(),
    }
}

impl Region {
    /// The mechanism and the clock of a region that is there.
    pub(super) fn peek(memory: Memory) -> Option<(countersink_percpu::Mechanism, u32)> {
        use core::sync::atomic::Ordering::Acquire;
        if !os::open_part(&memory, 0, layout::UNIT) {
            return None;
        }
        let region = Region::new(memory, choice().mechanism, Hindrance::None);
        let mechanism = region.u32(layout::header::MECHANISM as u64).load(Acquire);
        let clock = region.u32(layout::header::CLOCK as u64).load(Acquire);
        Some((header::mechanism_of(mechanism)?, clock))
    }
}

/// Where this process's metrics are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What the region lies in.
    pub place: Place,
    /// Why it is not where it was to be, a sentence; empty if it is.
    pub hindrance: String,
    /// Room for so many metrics.
    pub metrics: u32,
    /// Room for so many segments.
    pub segments: u32,
}

/// What a process's region lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A memfd of this process or of one that it was forked from.
    Memfd,
    /// A file.
    File,
    /// Another process's region, which the environment named.
    Joined,
    /// Memory that no other process sees.
    Private,
    /// Nothing: there was no memory. Metrics count in what little the program has brought along.
    Nowhere,
}

/// Where this process's metrics are; makes the region if there is none yet.
pub fn status() -> Status {
    let Some(region) = main() else {
        return Status {
            place: Place::Nowhere,
            hindrance: "there is no memory for a region".to_owned(),
            metrics: 0,
            segments: 0,
        };
    };
    let memory = region.memory();
    Status {
        place: match memory.backing {
            _ if region.left.load(core::sync::atomic::Ordering::Relaxed) => Place::Memfd,
            _ if memory.joined => Place::Joined,
            Backing::Memfd => Place::Memfd,
            Backing::File => Place::File,
            Backing::Private => Place::Private,
        },
        hindrance: hindrance_text(region.hindrance),
        metrics: memory.layout.entries,
        segments: memory.layout.segments,
    }
}

/// A hindrance as a phrase, with what the system calls the error; empty if there is none.
pub(crate) fn hindrance_text(hindrance: Hindrance) -> String {
    match hindrance {
        Hindrance::Error(error) => std::io::Error::from_raw_os_error(error).to_string(),
        other => other.to_string(),
    }
}

/// The same without allocating, for the header.
impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hindrance::None => "",
            Hindrance::Error(error) => return write!(f, "the system refused: error {error}"),
            Hindrance::Limit => "a resource limit leaves no room for a region",
            Hindrance::Directory => {
                "the directory is not a directory of ours that is closed to others"
            }
            Hindrance::NotJoined => {
                "what COUNTERSINK_REGION names is not a region that this program can use"
            }
            Hindrance::System => "this system has no memory that others can read",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Memfd => "memfd",
            Place::File => "file",
            Place::Joined => "region of another process",
            Place::Private => "private memory",
            Place::Nowhere => "nowhere",
        })
    }
}
