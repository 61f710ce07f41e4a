//! Law 1 for all operations at once: what the lanes hold, and what the callers were told, must have
//! an explanation.
//!
//! An explanation is an order of whole operations, each applied to one lane by [`Op::decide`] with
//! nothing in between. Those that returned are applied once each and give the outcome that was
//! returned; those in progress or killed are applied at most once; each thread's own come in their
//! order. So a count lost or counted twice, a torn pair, a mismatch that never was, a broken chain
//! of exchanges, a minimum that is none: none has an explanation. Nothing here looks at what the
//! commits did, only at what they left and what was returned.
//!
//! As it must hold in each state, the memory of a state being what a reader of both words of a
//! lane at once would see, no such reader needs to be modelled.

use std::collections::HashSet;

use countersink_percpu::spec::{Op, Outcome};

/// The lanes, two words each.
pub(crate) type Lanes = Vec<[u64; 2]>;

/// Operations in one thread's order. Without an outcome: in progress or killed; only the last
/// may be.
pub(crate) type Sequence = Vec<(Op, Option<Outcome>)>;

/// Whether there is an explanation of how `start` became `end`.
pub(crate) fn explained(start: &Lanes, end: &Lanes, sequences: &[Sequence]) -> bool {
    let mut tried = HashSet::new();
    let next = vec![0; sequences.len()];
    search(start.clone(), end, sequences, next, &mut tried)
}

fn search(
    lanes: Lanes,
    end: &Lanes,
    sequences: &[Sequence],
    next: Vec<usize>,
    tried: &mut HashSet<(Lanes, Vec<usize>)>,
) -> bool {
    let rest = |(s, &at): (&Sequence, &usize)| s[at..].iter().all(|(_, o)| o.is_none());
    if lanes == *end && sequences.iter().zip(&next).all(rest) {
        return true;
    }
    if !tried.insert((lanes.clone(), next.clone())) {
        return false;
    }
    for (which, sequence) in sequences.iter().enumerate() {
        let Some(&(op, outcome)) = sequence.get(next[which]) else {
            continue;
        };
        let mut after = next.clone();
        after[which] += 1;
        for lane in 0..lanes.len() {
            for guard in 0..=u64::from(op.has_guard()) {
                let decision = op.decide(lanes[lane], guard);
                if outcome.is_some_and(|told| told != decision.outcome) {
                    continue;
                }
                let mut lanes = lanes.clone();
                if let Some(words) = decision.commit {
                    lanes[lane][..op.width()].copy_from_slice(&words[..op.width()]);
                }
                if search(lanes, end, sequences, after.clone(), tried) {
                    return true;
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: Op = Op::Add(1);
    const DONE: Option<Outcome> = Some(Outcome::Done);

    fn one_lane(start: [u64; 2], end: [u64; 2], sequences: &[Sequence]) -> bool {
        explained(&vec![start], &vec![end], sequences)
    }

    #[test]
    fn counts() {
        let told = vec![(ADD, DONE)];
        let untold = vec![(ADD, None)];
        for (end, sequences, yes) in [
            (2, vec![told.clone(), told.clone()], true),
            (1, vec![told.clone(), told.clone()], false), // lost
            (3, vec![told.clone(), told.clone()], false), // counted twice
            (1, vec![told.clone(), untold.clone()], true),
            (2, vec![told.clone(), untold.clone()], true),
            (3, vec![told.clone(), untold.clone()], false),
            (0, vec![told.clone(), untold.clone()], false),
        ] {
            assert_eq!(one_lane([0, 0], [end, 0], &sequences), yes, "{end}");
        }
    }

    #[test]
    fn pairs_are_not_torn() {
        let pair = |outcome| vec![vec![(Op::AddPair([1, 10]), outcome)]];
        assert!(one_lane([0, 0], [1, 10], &pair(None)));
        assert!(!one_lane([0, 0], [1, 0], &pair(None)));
        assert!(!one_lane([0, 0], [0, 10], &pair(None)));
    }

    #[test]
    fn outcomes_must_have_been() {
        let exchange = |new, old| vec![(Op::Exchange(new), Some(Outcome::Value(old)))];
        assert!(one_lane([0; 2], [2, 0], &[exchange(1, 0), exchange(2, 1)]));
        assert!(!one_lane([0; 2], [2, 0], &[exchange(1, 0), exchange(2, 0)]));

        let swap = Op::CompareExchange { old: 0, new: 5 };
        let mismatch = |held| vec![(swap, Some(Outcome::Mismatch([held, 0])))];
        assert!(one_lane([0; 2], [1, 0], &[vec![(ADD, DONE)], mismatch(1)]));
        assert!(!one_lane([0; 2], [1, 0], &[vec![(ADD, DONE)], mismatch(0)]));
        assert!(!one_lane([0; 2], [1, 0], &[vec![(ADD, DONE)], mismatch(7)]));
    }

    #[test]
    fn threads_keep_their_order() {
        let returns = |n| (Op::AddReturn(1), Some(Outcome::Value(n)));
        assert!(one_lane([0; 2], [2, 0], &[vec![returns(1), returns(2)]]));
        assert!(!one_lane([0; 2], [2, 0], &[vec![returns(2), returns(1)]]));
        assert!(one_lane(
            [0; 2],
            [2, 0],
            &[vec![returns(2)], vec![returns(1)]]
        ));
    }

    #[test]
    fn extremes_are_of_all_that_returned() {
        let max = |n, stored| vec![(Op::StoreMaxSigned(n), Some(Outcome::Stored(stored)))];
        assert!(one_lane([0; 2], [4, 0], &[max(3, true), max(4, true)]));
        assert!(one_lane([0; 2], [4, 0], &[max(3, false), max(4, true)]));
        assert!(!one_lane([0; 2], [3, 0], &[max(3, true), max(4, true)]));
        assert!(!one_lane([0; 2], [3, 0], &[max(3, true), max(4, false)]));
    }
}
