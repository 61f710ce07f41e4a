//! Where a run has got to, for whoever displays it. The harness prints nothing.

/// Receives what a run is doing.
pub trait Progress {
    /// A point begins, after `done` of the experiment's `total` points. Called once more at the
    /// end, with `done == total` and an empty name.
    fn at(&mut self, done: usize, total: usize, point: &str);

    /// Whether to end the run: asked before each sample. What was finished is kept.
    fn is_stopped(&mut self) -> bool {
        false
    }
}

/// Displays nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn at(&mut self, _done: usize, _total: usize, _point: &str) {}
}
