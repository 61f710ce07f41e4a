//! How idle all CPUs are.

/// Time of all CPUs since the machine was started, in ticks: idle, and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuTime {
    idle: u64,
    all: u64,
}

impl CpuTime {
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, and others, of which guests are in user already but counted as
    /// will-it-scale counts them.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line
            .split_ascii_whitespace()
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
        Some(CpuTime {
            idle,
            all: ticks.iter().sum(),
        })
    }

    /// How much of the time since then was idle, in percent.
    pub(super) fn idle_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle);
        if all == 0 {
            return 0.0;
        }
        100.0 * idle as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_idle_and_iowait_of_all() {
        let parse = |text: &str| CpuTime::parse(text);
        let before = parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3").expect("a line");
        let after = parse("cpu  150 0 100 850 100 0 0 0 0 0\n").expect("a line");
        assert_eq!(after.idle_since(before), 50.0);
        assert_eq!(before.idle_since(before), 0.0);
        for bad in ["", "cpu0 1 2 3 4", "cpu 1 2", "cpu 1 x 3 4 5"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(CpuTime::now().is_some());
    }
}
