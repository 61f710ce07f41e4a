//! Regions and things that look like them, written after the format's description.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

const UNIT: u64 = 64 * 1024;

/// What a header says, as far as it is varied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) cpus: u32,
    pub(crate) entries: u32,
    pub(crate) segments: u32,
    pub(crate) mechanism: u32,
    pub(crate) clock: u32,
}

impl Header {
    fn groups(&self) -> u32 {
        (self.entries * 2 / 16).next_power_of_two().max(512)
    }

    pub(crate) fn entries_offset(&self) -> u64 {
        UNIT + u64::from(self.groups()) * 128
    }

    pub(crate) fn segments_offset(&self) -> u64 {
        self.entries_offset() + u64::from(self.entries) * 512
    }

    fn segment_size(&self) -> u64 {
        u64::from((self.cpus + 2) | 1) * UNIT
    }

    pub(crate) fn size(&self) -> u64 {
        self.segments_offset() + u64::from(self.segments) * self.segment_size()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"CSINKREG");
        let mut put32 = |at, value: u32| put(at, &value.to_ne_bytes());
        put32(8, 1);
        put32(12, 0x0102_0304);
        put32(24, 1);
        put32(28, self.cpus);
        put32(32, UNIT as u32);
        put32(36, self.mechanism);
        put32(40, self.entries);
        put32(44, self.segments);
        put32(48, self.groups());
        put32(52, 512);
        put32(88, self.clock);
        put32(92, 1);
        put32(120, std::process::id());
        let mut put64 = |at, value: u64| put(at, &value.to_ne_bytes());
        put64(16, self.size());
        put64(56, UNIT);
        put64(64, self.entries_offset());
        put64(72, self.segments_offset());
        put64(80, self.segment_size());
        bytes
    }
}

/// A memfd with a region's name, sealed as one.
pub(crate) fn memfd(size: u64, header: &[u8], sealed: bool) -> File {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let fd = memfd_create("countersink", flags).expect("a memfd");
    ftruncate(&fd, size).expect("room");
    let file = File::from(fd);
    file.write_all_at(header, 0).expect("room");
    if sealed {
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("sealed");
    }
    file
}

/// Where other processes find a file of this one.
pub(crate) fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}
