//! On request: a file, which can be read after a crash.
#![allow(unsafe_code)]

use core::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, fallocate, fstat, mkdirat,
    openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{keeping_errno, memfd, memory};
use crate::layout::Layout;
use crate::os::{Backing, Hindrance, Identity, Memory};
use crate::text::Text;

/// More names than a process has files: one for each version of the library, and each time that it
/// executed itself anew.
const MOST_NAMES: u32 = 64;

/// A file in a directory, with as much of the wanted layout as limits allow. `fill` completes the region
/// before others see the file.
pub(crate) fn create(
    directory: &CStr,
    identity: &Identity,
    wanted: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Hindrance> {
    let directory = open_directory(directory)?;
    let mut hindrance = Hindrance::Limit;
    for layout in memory::layouts(wanted, true) {
        match make(&directory, identity, layout, fill) {
            Ok(memory) => return Ok(memory),
            Err(error) => hindrance = Hindrance::Error(error.raw_os_error()),
        }
    }
    Err(hindrance)
}

/// The directory, made if it is missing; only one that nobody but us can write to.
fn open_directory(path: &CStr) -> Result<OwnedFd, Hindrance> {
    let error = |error: Errno| Hindrance::Error(error.raw_os_error());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut trimmed = Text::empty();
    let path = without_slash(path, &mut trimmed).ok_or(Hindrance::Directory)?;
    let opened = match openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => match mkdirat(CWD, path, Mode::RWXU) {
            // Another process may have been faster.
            Ok(()) | Err(Errno::EXIST) => openat(CWD, path, flags, Mode::empty()),
            Err(errno) => Err(errno),
        },
        opened => opened,
    };
    let directory = opened.map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => Hindrance::Directory,
        errno => error(errno),
    })?;
    let status = fstat(&directory).map_err(error)?;
    let ours = status.st_uid == geteuid().as_raw();
    let closed = Mode::from_raw_mode(status.st_mode) & (Mode::RWXG | Mode::RWXO) == Mode::empty();
    let real = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    if ours && closed && real {
        Ok(directory)
    } else {
        Err(Hindrance::Directory)
    }
}

/// A path without slashes at its end, with which a symbolic link would be followed. `None` if it is too
/// long for that.
fn without_slash<'a>(path: &'a CStr, text: &'a mut Text<256>) -> Option<&'a CStr> {
    let bytes = path.to_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/');
    // Nothing but slashes is the root.
    let trimmed = bytes.get(..end.map_or(1, |at| at + 1))?;
    if trimmed.len() == bytes.len() {
        return Some(path);
    }
    trimmed.iter().for_each(|byte| text.push(*byte));
    (text.as_bytes() == trimmed).then_some(text.as_c_str())
}

fn make(
    directory: &OwnedFd,
    identity: &Identity,
    layout: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Errno> {
    let (temporary, fd) = temporary(directory, identity)?;
    let made = complete(directory, &temporary, fd, identity, layout, fill);
    if made.is_err() {
        let _ = unlinkat(directory, temporary.as_c_str(), AtFlags::empty());
    }
    made
}

/// A new file under a name of its own. Two threads may be here at once, and two versions of this
/// library; each makes a file.
fn temporary(directory: &OwnedFd, identity: &Identity) -> Result<(Text<128>, OwnedFd), Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..MOST_NAMES {
        let Identity {
            pid, start_time, ..
        } = identity;
        let name = Text::of(format_args!(".countersink-{pid}-{start_time}-{number}.tmp"));
        match openat(directory, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => return Ok((name, fd)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

fn complete(
    directory: &OwnedFd,
    temporary: &Text<128>,
    fd: OwnedFd,
    identity: &Identity,
    layout: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Errno> {
    let fd = memfd::above_standard(fd)?;
    lock(&fd)?;
    // All of it, now: a hole that cannot be filled later is a deadly signal.
    fallocate(&fd, FallocateFlags::empty(), 0, layout.size())?;
    let memory = Memory {
        file: memory::file(&fd)?,
        start: memory::map(fd.as_fd(), layout)?,
        layout,
        backing: Backing::File,
        joined: false,
        descriptor: -1,
    };
    let placed = if fill(&memory) {
        place(directory, temporary, identity)
    } else {
        Err(Errno::NOMEM)
    };
    if let Err(error) = placed {
        memory::abandon(&memory);
        return Err(error);
    }
    Ok(Memory {
        descriptor: fd.into_raw_fd(),
        ..memory
    })
}

/// Gives a complete file the first name that is free. A program that executes itself anew, and another
/// version of this library, have the same one.
fn place(directory: &OwnedFd, temporary: &Text<128>, identity: &Identity) -> Result<(), Errno> {
    let rename = |number: u32, flags| {
        let (old, new) = (temporary.as_c_str(), name(identity, number));
        renameat_with(directory, old, directory, new.as_c_str(), flags)
    };
    for number in 0..MOST_NAMES {
        match rename(number, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // Not every file system can do it without replacing; the number makes up for it.
            Err(Errno::INVAL) => return rename(process_number(), RenameFlags::empty()),
            placed => return placed,
        }
    }
    Err(Errno::EXIST)
}

/// Removes the name of a file that another thread was faster to make.
pub(crate) fn remove(directory: &CStr, identity: &Identity, memory: &Memory) {
    let Ok(directory) = open_directory(directory) else {
        return;
    };
    for number in 0..MOST_NAMES {
        let name = name(identity, number);
        let status = statat(&directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        if status.is_ok_and(|status| (status.st_dev, status.st_ino) == memory.file) {
            let _ = unlinkat(&directory, name.as_c_str(), AtFlags::empty());
            return;
        }
    }
}

/// `PROGRAM.PID.START.countersink`: no two processes of a boot have the same; from the second file of a
/// process on, with a number.
fn name(identity: &Identity, number: u32) -> Text<128> {
    let end = identity.program.iter().position(|byte| *byte == 0);
    let program = &identity.program[..end.unwrap_or(identity.program.len())];
    let mut text = Text::<128>::empty();
    for byte in program {
        let plain = byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        text.push(if plain { *byte } else { b'_' });
    }
    text.append(format_args!(".{}.{}", identity.pid, identity.start_time));
    if number > 0 {
        text.append(format_args!("-{number}"));
    }
    text.append(format_args!(".countersink"));
    text
}

/// Another number for each call, among those of names.
fn process_number() -> u32 {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Relaxed) % MOST_NAMES
}

/// Takes the lock that says "alive": a read lock, since others may join. It belongs to the open file, so it
/// lasts until the last process that has it open or mapped is gone, whoever closes the descriptor.
pub(super) fn lock(fd: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = libc::F_RDLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    // SAFETY: the structure lives as long as the call.
    let call = || unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    keeping_errno(call).map(|_| ())
}
