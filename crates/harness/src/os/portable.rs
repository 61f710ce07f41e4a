//! Everywhere else: threads stay where the system puts them, and results say so.

use std::io;

pub(crate) fn allowed_cpus() -> Option<Vec<usize>> {
    None
}

pub(crate) fn pin(_cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn thread_cpu_ns() -> Option<u64> {
    None
}

pub(crate) fn kernel_release() -> Option<String> {
    None
}

pub(crate) fn page_size() -> Option<usize> {
    None
}
