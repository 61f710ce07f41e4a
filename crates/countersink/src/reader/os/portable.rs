//! Systems other than Linux: files can be read; processes cannot be found, and nothing is known of
//! who lives.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Opened;
use crate::reader::model::Info;
use crate::reader::open::{Found, Life, Pruned, RegionFile};
use crate::reader::source::Source;
use crate::reader::{OpenError, Region, State};

/// Who may have a region.
#[derive(Debug)]
pub(in crate::reader) enum Holder {
    /// A core file, or memory.
    Nobody,
    /// A file.
    Anyone,
}

pub(in crate::reader) fn state(holder: &Holder) -> State {
    match holder {
        Holder::Nobody => State::Dead,
        Holder::Anyone => State::Unknown,
    }
}

pub(in crate::reader) fn open_file(path: &Path) -> Result<Opened, OpenError> {
    let origin = path.display().to_string();
    let failed = |error| OpenError::Open {
        origin: origin.clone(),
        error,
    };
    if !fs::symlink_metadata(path).map_err(failed)?.is_file() {
        return Err(OpenError::NotRegular {
            origin,
            what: "something else",
        });
    }
    let file = File::open(path).map_err(failed)?;
    Ok(Opened {
        source: Box::new(Positioned(Mutex::new(file))),
        id: None,
        holder: Holder::Anyone,
    })
}

#[cfg(unix)]
pub(in crate::reader) fn open_descriptor(file: File, _: &str) -> Result<Opened, OpenError> {
    Ok(Opened {
        source: Box::new(Positioned(Mutex::new(file))),
        id: None,
        holder: Holder::Anyone,
    })
}

/// A file that is read at any position by moving there.
#[derive(Debug)]
struct Positioned(Mutex<File>);

impl Source for Positioned {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Not every system goes to offsets where nothing is.
        if offset >= file.metadata()?.len() {
            return Ok(0);
        }
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    fn size(&self) -> io::Result<u64> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.metadata()?.len())
    }
}

pub(in crate::reader) fn of_process(_: u32) -> Result<Vec<Region>, OpenError> {
    Err(OpenError::NotLinux)
}

pub(in crate::reader) fn find() -> Result<Found, OpenError> {
    Err(OpenError::NotLinux)
}

pub(in crate::reader) fn files_in(directory: &Path) -> Result<Vec<RegionFile>, OpenError> {
    let failed = |error| OpenError::Open {
        origin: directory.display().to_string(),
        error,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "countersink")
        {
            let region = Region::open_file(&path);
            files.push(RegionFile { path, region });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Without locks nothing is known to be dead.
pub(in crate::reader) fn prune(_: &Path) -> Result<Vec<Pruned>, OpenError> {
    Err(OpenError::NotLinux)
}

pub(in crate::reader) fn life(_: &Info) -> Life {
    Life::Unknown
}

pub(in crate::reader) fn boot() -> Option<[u8; 16]> {
    None
}

/// Time since the first use.
pub(in crate::reader) fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Nothing can be mapped here, which is what this says.
pub(in crate::reader) fn attach(_: &File) -> Result<crate::region::Attached, String> {
    crate::region::Attached::new(c"")
}

/// Whether an error means that what is read is not there any more.
pub(in crate::reader) fn is_gone(_: &io::Error) -> bool {
    false
}
