//! Everywhere else: threads stay where the system puts them, and results say so.

use std::collections::BTreeSet;
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

pub(crate) fn current_cpu() -> Option<usize> {
    None
}

pub(crate) fn thread_usage() -> Option<super::Usage> {
    None
}

pub(crate) fn thread_waited_ns() -> Option<u64> {
    None
}

pub(crate) fn thread_migrations() -> Option<u64> {
    None
}

pub(crate) fn steal_ns(_cpus: &BTreeSet<usize>) -> Option<u64> {
    None
}
