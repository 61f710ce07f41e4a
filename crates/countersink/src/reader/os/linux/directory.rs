//! Directories with region files.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::file::{Regular, id, open_at, opened};
use super::lock;
use crate::reader::header;
use crate::reader::open::{Life, Pruned, RegionFile};
use crate::reader::{OpenError, Region};

/// How old a half-made file is that nobody completes any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// A directory into which nobody else can put files.
struct Trusted {
    path: PathBuf,
    descriptor: OwnedFd,
    owner: u32,
}

impl Trusted {
    fn open(path: &Path) -> Result<Self, OpenError> {
        // Without a trailing slash, which would follow a link.
        let path: PathBuf = path.components().collect();
        let origin = || path.display().to_string();
        let not_trusted = |why: &str| OpenError::NotTrusted {
            origin: origin(),
            why: why.to_owned(),
        };
        let failed = |error: Errno| match error {
            Errno::LOOP | Errno::NOTDIR => not_trusted("it is a symbolic link, or no directory"),
            error => OpenError::Open {
                origin: origin(),
                error: error.into(),
            },
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(CWD, &path, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&descriptor).map_err(failed)?;
        let us = geteuid();
        if stat.st_uid != us.as_raw() && !us.is_root() {
            return Err(not_trusted("it belongs to someone else"));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(not_trusted("others may write to it"));
        }
        Ok(Trusted {
            path,
            descriptor,
            owner: stat.st_uid,
        })
    }

    /// The names in it, sorted.
    fn names(&self, wanted: fn(&[u8]) -> bool) -> Result<Vec<Vec<u8>>, OpenError> {
        let failed = |error: Errno| OpenError::Open {
            origin: self.path.display().to_string(),
            error: error.into(),
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if wanted(name) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// The name of a region file.
fn is_region(name: &[u8]) -> bool {
    name.ends_with(b".countersink") && !name.starts_with(b".")
}

/// The name of a region file that is being made.
fn is_half_made(name: &[u8]) -> bool {
    name.starts_with(b".countersink-") && name.ends_with(b".tmp")
}

pub(in crate::reader) fn files_in(directory: &Path) -> Result<Vec<RegionFile>, OpenError> {
    let directory = Trusted::open(directory)?;
    let names = directory.names(is_region)?;
    let file = |name: Vec<u8>| {
        let name = Path::new(OsStr::from_bytes(&name));
        let path = directory.path.join(name);
        match open_in(&directory, name, &path.display().to_string()) {
            // It was removed since its name was read.
            Err(OpenError::Open { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                None
            }
            region => Some(RegionFile { path, region }),
        }
    };
    Ok(names.into_iter().filter_map(file).collect())
}

fn open_in(directory: &Trusted, name: &Path, origin: &str) -> Result<Region, OpenError> {
    let (file, stat) = open_at(
        &directory.descriptor,
        name,
        OFlags::NOFOLLOW,
        OFlags::RDONLY,
        origin,
    )?;
    if stat.st_uid != directory.owner {
        return Err(OpenError::NotTrusted {
            origin: directory.path.display().to_string(),
            why: format!("{origin} belongs to someone else"),
        });
    }
    let file = opened(file, &stat);
    Region::new(file.source, origin.to_owned(), file.id, file.holder)
}

pub(in crate::reader) fn prune(directory: &Path) -> Result<Vec<Pruned>, OpenError> {
    let directory = Trusted::open(directory)?;
    let names = directory.names(|name| is_region(name) || is_half_made(name))?;
    let pruned = names.into_iter().map(|name| {
        let name = Path::new(OsStr::from_bytes(&name));
        let path = directory.path.join(name);
        match prune_file(&directory, name, &path.display().to_string()) {
            Ok(true) => Pruned::Removed(path),
            Ok(false) => Pruned::Alive(path),
            Err(why) => Pruned::Kept(path, why),
        }
    });
    Ok(pruned.collect())
}

/// Removes a file whose owner is dead; `false` if it lives.
fn prune_file(directory: &Trusted, name: &Path, origin: &str) -> Result<bool, String> {
    let opened = open_at(
        &directory.descriptor,
        name,
        OFlags::NOFOLLOW,
        OFlags::RDWR,
        origin,
    );
    let (file, stat) = opened.map_err(|error| error.to_string())?;
    if stat.st_uid != directory.owner || stat.st_nlink != 1 {
        return Err("it belongs to someone else, or has several names".to_owned());
    }
    let file = Arc::new(file);
    // Whoever makes a file locks it at once: the lock is held until it is removed.
    if !lock::try_lock(&file).map_err(|error| error.to_string())? {
        return Ok(false);
    }
    if is_half_made(name.as_os_str().as_bytes()) {
        // Between making and locking a file there is a moment.
        if !is_abandoned(&file) {
            return Ok(false);
        }
    } else {
        let (info, _) =
            header::read(&Regular(Arc::clone(&file)), origin).map_err(|error| error.to_string())?;
        if info.creator() == Life::Alive {
            return Err("nobody has locked it, and the process that made it lives".to_owned());
        }
    }
    remove(directory, name, &stat).map_err(|error| error.to_string())
}

/// Whether it has not been written to for a while.
fn is_abandoned(file: &std::fs::File) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| {
        let age = SystemTime::now().duration_since(modified);
        age.is_ok_and(|age| age > ABANDONED)
    })
}

/// Removes the name, if it is still that of the file that was looked at.
fn remove(directory: &Trusted, name: &Path, stat: &Stat) -> rustix::io::Result<bool> {
    let now = statat(&directory.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if id(&now) != id(stat) {
        return Ok(false);
    }
    unlinkat(&directory.descriptor, name, AtFlags::empty())?;
    Ok(true)
}
