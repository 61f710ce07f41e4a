//! Finds a cycle in the graph of states.

use crate::report::Edge;

/// The edges of some cycle, in order; `None` if there is none.
pub(crate) fn find(states: usize, edges: &[Edge]) -> Option<Vec<Edge>> {
    let left = on_or_behind_cycles(states, edges);
    // Each state that is left has an edge from another that is left: walk back until one repeats.
    let mut into = vec![None; states];
    for edge in edges.iter().filter(|e| left[e.from] && left[e.to]) {
        into[edge.to] = Some(*edge);
    }
    let mut at = left.iter().position(|&left| left)?;
    let mut walked: Vec<Edge> = Vec::new();
    let mut step_of = vec![None; states];
    while step_of[at].is_none() {
        step_of[at] = Some(walked.len());
        let edge: Edge = into[at]?;
        walked.push(edge);
        at = edge.from;
    }
    let mut cycle = walked.split_off(step_of[at]?);
    cycle.reverse();
    Some(cycle)
}

/// Takes away states without an edge into them until every one left has one (Kahn's topological
/// sort): what is left lies on a cycle or behind one.
fn on_or_behind_cycles(states: usize, edges: &[Edge]) -> Vec<bool> {
    let mut into = vec![0_usize; states];
    let mut out_of = vec![Vec::new(); states];
    for edge in edges {
        into[edge.to] += 1;
        out_of[edge.from].push(edge.to);
    }
    let mut left = vec![true; states];
    let mut free: Vec<usize> = (0..states).filter(|&s| into[s] == 0).collect();
    while let Some(state) = free.pop() {
        left[state] = false;
        for &to in &out_of[state] {
            into[to] -= 1;
            if into[to] == 0 {
                free.push(to);
            }
        }
    }
    left
}
