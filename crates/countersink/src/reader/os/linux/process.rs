//! What a process has that may be a region.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fstat, memfd_create, openat};

use super::file::{Holder, Memory, id, look_at, opened, reopen};
use super::life::Process;
use super::maps::{self, Line};
use super::mounts;
use crate::reader::source::Pieces;
use crate::reader::{OpenError, Region};

/// How the kernel shows a memfd with the name of a region.
const MEMFD: &[u8] = b"/memfd:countersink (deleted)";
/// More regions than a process has versions of the library.
const MOST: usize = 64;

/// What may be a region, and has not been opened yet.
#[derive(Debug)]
pub(super) struct Candidate {
    /// A link in the process's directory that leads to it.
    link: PathBuf,
    is_memfd: bool,
    /// The lines of the process's mappings, where it was found in them.
    lines: Vec<Line>,
}

/// What a process has that may be a region: descriptors, and what is mapped and has none.
pub(super) fn candidates(directory: &Path) -> io::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory.join("fd"))? {
        // A descriptor that was closed meanwhile.
        let Ok(entry) = entry else { continue };
        let link = entry.path();
        let Ok(target) = fs::read_link(&link) else {
            continue;
        };
        let target = target.as_os_str();
        if is_wanted(target.as_bytes()) && is_writable(&link) && found.len() < MOST {
            found.push(Candidate {
                link,
                is_memfd: target.as_bytes() == MEMFD,
                lines: Vec::new(),
            });
        }
    }
    // Some processes show their descriptors and not their mappings; then there are no lines.
    let lines = maps::read(&directory.join("maps"), is_wanted).unwrap_or_default();
    for line in lines {
        let same = |candidate: &&mut Candidate| {
            candidate
                .lines
                .first()
                .is_some_and(|first| first.id == line.id)
        };
        if let Some(candidate) = found.iter_mut().find(same) {
            candidate.lines.push(line);
        } else if found.len() < 2 * MOST {
            found.push(Candidate {
                link: directory.join(format!("map_files/{:x}-{:x}", line.start, line.end)),
                is_memfd: line.name == MEMFD,
                lines: vec![line],
            });
        }
    }
    Ok(found)
}

/// Whether a descriptor may be written to: those of readers may not, and readers do not count. The
/// link's own permissions say so.
fn is_writable(link: &Path) -> bool {
    let link = fs::symlink_metadata(link);
    link.is_ok_and(|link| link.mode() & 0o200 != 0)
}

/// A memfd with a region's name, or a file with a region file's.
fn is_wanted(name: &[u8]) -> bool {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    name == b"/memfd:countersink" || (name.starts_with(b"/") && name.ends_with(b".countersink"))
}

impl Candidate {
    /// The region, unless it is among those that were seen; then which it is.
    pub(super) fn open(
        &self,
        process: &Process,
        origin: &str,
        seen: impl Fn((u64, u64)) -> Option<usize>,
    ) -> Result<Region, Refused> {
        if let Some(at) = self.lines.first().and_then(|line| seen(line.id)) {
            return Err(Refused::Seen(at));
        }
        self.check_file_system(process, origin)?;
        let (place, stat) = match look_at(CWD, &self.link, OFlags::empty(), origin) {
            Ok(found) => found,
            // Links to mapped files can be followed by few; the memory can be read by more.
            Err(OpenError::Open { error, .. }) if !self.lines.is_empty() => {
                return self.open_memory(process, origin, error);
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(at) = seen(id(&stat)) {
            return Err(Refused::Seen(at));
        }
        self.check_device(stat.st_dev, origin)?;
        let file = opened(reopen(&place, OFlags::RDONLY, origin)?, &stat);
        let holder = match self.is_memfd {
            true => Holder::Processes(vec![process.clone()]),
            false => file.holder,
        };
        Ok(Region::new(
            file.source,
            origin.to_owned(),
            file.id,
            holder,
        )?)
    }

    /// Anyone can show a file under a memfd's name, on a file system that hangs.
    fn check_device(&self, device: u64, origin: &str) -> Result<(), OpenError> {
        match self.is_memfd && memfd_device() != Some(device) {
            true => Err(OpenError::NotMemfd {
                origin: origin.to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Whether what a link leads to can be looked at without asking a file system that may never answer, as
    /// one of another user's, or a server's that is gone.
    fn check_file_system(&self, process: &Process, origin: &str) -> Result<(), OpenError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(place) = openat(CWD, &self.link, flags, Mode::empty()) else {
            return Ok(());
        };
        let tables = [
            process.directory.join("mountinfo"),
            PathBuf::from("/proc/self/mountinfo"),
        ];
        match mounts::file_system(place.as_raw_fd(), &tables) {
            Some(kind) if mounts::answers(&kind) => Ok(()),
            // Memfds are on a mount of the kernel's own.
            None if memfd_device() == mounts::cached_device(&place) => Ok(()),
            kind => Err(OpenError::Open {
                origin: origin.to_owned(),
                error: io::Error::other(format!(
                    "it lies on a file system that may never answer ({})",
                    kind.as_deref().unwrap_or("not known here")
                )),
            }),
        }
    }

    /// The region in the process's memory.
    fn open_memory(
        &self,
        process: &Process,
        origin: &str,
        error: io::Error,
    ) -> Result<Region, Refused> {
        let id = self.lines.first().map(|line| line.id);
        self.check_device(id.map_or(0, |id| id.0), origin)?;
        let memory =
            fs::File::open(process.directory.join("mem")).map_err(|_| OpenError::Open {
                origin: origin.to_owned(),
                error,
            })?;
        let pieces = self.lines.iter().map(Line::piece).collect();
        let source = Box::new(Pieces::new(Memory(memory), pieces));
        let holder = Holder::Processes(vec![process.clone()]);
        Ok(Region::new(source, origin.to_owned(), id, holder)?)
    }

    /// What it is, after "process 12".
    pub(super) fn describe(&self) -> String {
        let name = self
            .link
            .file_name()
            .map(OsStr::to_string_lossy)
            .unwrap_or_default();
        match self.lines.is_empty() {
            true => format!("descriptor {name}"),
            false => format!("mapping {name}"),
        }
    }
}

/// Why a candidate is not another region.
#[derive(Debug)]
pub(super) enum Refused {
    /// It is one that was seen before, with this number.
    Seen(usize),
    /// It cannot be read.
    Error(OpenError),
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        Refused::Error(error)
    }
}

/// The device that all memfds are on.
pub(super) fn memfd_device() -> Option<u64> {
    static DEVICE: OnceLock<Option<u64>> = OnceLock::new();
    *DEVICE.get_or_init(|| {
        let memfd = memfd_create("countersink-reader", MemfdFlags::CLOEXEC).ok()?;
        Some(fstat(&memfd).ok()?.st_dev)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_under_a_memfds_name_is_not_opened() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let candidate = Candidate {
            link: file.path().to_owned(),
            is_memfd: true,
            lines: Vec::new(),
        };
        let process = Process::of("/proc/self".into()).expect("this process");
        let refused = candidate.open(&process, "it", |_| None);
        assert!(
            matches!(refused, Err(Refused::Error(OpenError::NotMemfd { .. }))),
            "{refused:?}"
        );
    }

    #[test]
    fn names_of_regions_are_known() {
        for (name, wanted) in [
            ("/memfd:countersink (deleted)", true),
            ("/memfd:countersink2 (deleted)", false),
            ("/tmp/12-abc.countersink", true),
            ("/tmp/12-abc.countersink (deleted)", true),
            ("/tmp/.countersink-1.tmp", false),
            ("pipe:[1].countersink", false),
            ("", false),
        ] {
            assert_eq!(is_wanted(name.as_bytes()), wanted, "{name}");
        }
    }
}
