//! How far a run is, and whether Ctrl-C has ended it.

use std::time::Duration;

use countersink_harness::progress::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::pause::Interrupts;

/// A progress bar, on a terminal only. Ctrl-C ends the run after the sample that is being taken.
pub(crate) struct Bar {
    bar: ProgressBar,
    interrupts: Interrupts,
    is_stopped: bool,
    processes: usize,
}

impl Bar {
    /// A bar for an experiment that so many processes measure, this one first.
    pub(crate) fn new(experiment: &str, processes: usize) -> Self {
        let style =
            ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg} ({eta} left)");
        let bar = ProgressBar::new(0).with_prefix(experiment.to_owned());
        Bar {
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            },
            interrupts: Interrupts::hold(),
            is_stopped: false,
            processes,
        }
    }

    /// Another process has begun; this many were there before.
    pub(crate) fn process(&mut self, before: usize) {
        let points = self.bar.length().unwrap_or(0) / self.processes.max(1) as u64;
        self.bar.set_position(points * before as u64);
        self.bar
            .set_message(format!("process {} of {}", before + 1, self.processes));
    }

    /// Takes it away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn at(&mut self, done: usize, total: usize, point: &str) {
        self.bar.set_length((total * self.processes) as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(point.to_owned());
    }

    fn is_stopped(&mut self) -> bool {
        self.is_stopped |= self.interrupts.wait(Duration::ZERO);
        self.is_stopped
    }
}
