//! Families: one metric for each set of label values.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::os;

/// What can have labels: counters, gauges, spans, histograms, event groups.
pub trait Metric: Sized {
    /// Another of the same description, with these labels as they are written.
    #[doc(hidden)]
    fn labelled(&self, labels: &str) -> Self;

    /// Makes it known to readers before its first use.
    #[doc(hidden)]
    fn register(&self);
}

/// Metrics of one name that labels tell apart: one for each set of `L` label values.
///
/// ```
/// use countersink::{Counter, Family};
///
/// static REQUESTS: Family<Counter, 2> =
///     Family::new(Counter::new("http_requests"), ["method", "status"]);
///
/// let get_ok = REQUESTS.with(["GET", "200"]); // keep it: it costs what a static counter costs
/// get_ok.inc();
/// assert_eq!(REQUESTS.with(["GET", "200"]).sum(), 1);
/// ```
///
/// Looking one up writes the labels, takes a lock and compares texts, so it is no work for a hot path or a signal handler.
/// Metrics live until they are [removed](Self::remove) and the last handle is gone, in all processes
/// that share the region; one that is made again sooner goes on where it was, and so does one whose process
/// has forked while it had it, since the child may count in it still. Every one takes an entry of the region, so
/// label values should be few: not user names.
#[derive(Debug)]
pub struct Family<M, const L: usize = 1> {
    template: M,
    labels: [&'static str; L],
    members: RwLock<BTreeMap<Box<str>, Arc<M>>>,
}

impl<M: Metric, const L: usize> Family<M, L> {
    /// A family of metrics like this one, with labels of these names: `[a-zA-Z_][a-zA-Z0-9_]*`, all
    /// different. With other names, all of it counts privately.
    pub const fn new(template: M, labels: [&'static str; L]) -> Self {
        Family {
            template,
            labels,
            members: RwLock::new(BTreeMap::new()),
        }
    }

    /// The metric with these label values, in the order of the names; made if there is none.
    pub fn with(&self, values: [&str; L]) -> Arc<M> {
        let labels = self.text(values);
        let _gate = os::Gate::enter();
        if let Some(member) = read(&self.members).get(labels.as_str()) {
            return Arc::clone(member);
        }
        let mut members = write(&self.members);
        // Another thread may have made it between the two locks.
        if let Some(member) = members.get(labels.as_str()) {
            return Arc::clone(member);
        }
        let member = Arc::new(self.template.labelled(&labels));
        member.register();
        members.insert(labels.into_boxed_str(), Arc::clone(&member));
        member
    }

    /// Forgets the metric with these label values; whether there was one. It disappears from the
    /// region when the last handle is dropped, and what it counted with it.
    pub fn remove(&self, values: [&str; L]) -> bool {
        let labels = self.text(values);
        let removed = {
            let _gate = os::Gate::enter();
            write(&self.members).remove(labels.as_str())
        };
        removed.is_some()
    }

    /// All metrics there are by now, by their labels as they are written.
    pub fn members(&self) -> Vec<(String, Arc<M>)> {
        let _gate = os::Gate::enter();
        read(&self.members)
            .iter()
            .map(|(labels, member)| (labels.to_string(), Arc::clone(member)))
            .collect()
    }

    /// `name="value"`, separated by commas.
    fn text(&self, values: [&str; L]) -> String {
        let different = |at: usize| !self.labels[..at].contains(&self.labels[at]);
        let valid = (0..L).all(|at| is_label(self.labels[at]) && different(at));
        if !valid {
            // What no entry can have: it will be refused.
            return "\0".to_owned();
        }
        let mut text = String::new();
        for (name, value) in self.labels.iter().zip(values) {
            if !text.is_empty() {
                text.push(',');
            }
            text += name;
            text += "=\"";
            for character in value.chars() {
                match character {
                    '\\' => text += "\\\\",
                    '"' => text += "\\\"",
                    '\n' => text += "\\n",
                    other => text.push(other),
                }
            }
            text.push('"');
        }
        text
    }
}

fn is_label(name: &str) -> bool {
    crate::region::is_name(name) && !name.contains(':')
}

/// Nothing here panics with the lock held, but for want of memory.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
