//! Every world that can come of a scope, each once: a state that was seen is not walked again.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopline::policy::Rule;
use rustc_hash::FxHasher;

use crate::act::Act;
use crate::scope::Scope;
use crate::world::{Budget, World, Wrong};

/// The result of an exploration.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// Different worlds.
    pub states: u64,
    /// Worlds that were brought to a fair end.
    pub ends: u64,
    /// The first violation.
    pub found: Option<Found>,
}

/// Something wrong, and how to come there again.
#[derive(Debug, Clone)]
pub struct Found {
    /// The violation.
    pub wrong: String,
    /// The choices from the beginning; after them, the first of the possible acts is taken each time.
    pub choices: Vec<u16>,
    /// The story: one line for each act.
    pub story: Vec<String>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let choices: Vec<String> = self.choices.iter().map(u16::to_string).collect();
        write!(f, "{}\n  {}\n  choices: {}", self.wrong, self.story.join("\n  "), choices.join(","))
    }
}

/// How much may happen: messages, troubles, acts. The scope's own if nothing is said.
pub type Limits = Option<(u8, u8, u8)>;

struct Node {
    world: World,
    choices: Vec<u16>,
}

/// Looks at every world of a scope, up to the first that is wrong, always in the same order.
pub fn explore(scope: &'static Scope, limits: Limits, without: Option<Rule>) -> Explored {
    walk(scope, limits, without, false)
}

/// Walks the worlds of a scope, from the last choice to the first where `is_turned` is set.
fn walk(scope: &'static Scope, limits: Limits, without: Option<Rule>, is_turned: bool) -> Explored {
    let first = match begin(scope, limits, without, false) {
        Ok(world) => world,
        Err(wrong) => return Explored { found: Some(Found { wrong, choices: Vec::new(), story: Vec::new() }), ..Explored::default() },
    };
    let mut seen: HashSet<u64, BuildHasherDefault<FxHasher>> = HashSet::default();
    let mut stack = vec![Node { world: first, choices: Vec::new() }];
    let mut explored = Explored::default();
    while let Some(node) = stack.pop() {
        explored.states += 1;
        let mut acts: Vec<(usize, Act)> = node.world.acts().into_iter().enumerate().collect();
        if is_turned {
            acts.reverse();
        }
        for (at, act) in &acts {
            let mut world = node.world.clone();
            let done = world.act(act);
            let choices = || node.choices.iter().copied().chain([*at as u16]).collect::<Vec<u16>>();
            match done {
                Err(wrong) => {
                    let found = Found { wrong, choices: choices(), story: Vec::new() };
                    explored.found = Some(shrink(scope, limits, without, found));
                    return explored;
                }
                Ok(()) if *act == Act::End => explored.ends += 1,
                Ok(()) if seen.insert(state_of(&world)) => stack.push(Node { world, choices: choices() }),
                Ok(()) => {}
            }
        }
    }
    explored
}

fn state_of(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Runs something for each of these on all cores; what came of it is in their order.
pub fn side_by_side<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?))) {
            done.push((at, run(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn begin(scope: &'static Scope, limits: Limits, without: Option<Rule>, tells: bool) -> Result<World, Wrong> {
    let mut world = World::new(scope, without, tells)?;
    if let Some((faults, troubles, acts)) = limits {
        world.budget = Budget { faults, troubles, acts };
    }
    Ok(world)
}

/// Replays a world from its choices, and continues without further faults. Returns the violation, if there is one, with its story.
pub fn replay(scope: &'static Scope, limits: Limits, without: Option<Rule>, choices: &[u16]) -> Option<Found> {
    let mut world = match begin(scope, limits, without, true) {
        Ok(world) => world,
        Err(wrong) => return Some(Found { wrong, choices: Vec::new(), story: Vec::new() }),
    };
    let mut choices = choices.iter();
    let mut chosen = Vec::new();
    for _ in 0..5_000 {
        let acts = world.acts();
        let next = choices.next().copied().unwrap_or_default();
        let at = usize::from(next).min(acts.len().saturating_sub(1));
        let act = acts.get(at)?;
        chosen.push(at as u16);
        let done = world.act(act);
        if let Err(wrong) = done {
            while chosen.last() == Some(&0) {
                chosen.pop();
            }
            return Some(Found { wrong, choices: chosen, story: world.story.unwrap_or_default() });
        }
        if *act == Act::End {
            return None;
        }
    }
    Some(Found { wrong: "the run does not end".into(), choices: chosen, story: world.story.unwrap_or_default() })
}

/// The shortest story with the same end that can be had by leaving something out.
fn shrink(scope: &'static Scope, limits: Limits, without: Option<Rule>, found: Found) -> Found {
    let kind = |wrong: &str| wrong.split(':').next().unwrap_or_default().to_owned();
    let wanted = kind(&found.wrong);
    let again = |choices: &[u16]| replay(scope, limits, without, choices).filter(|again| kind(&again.wrong) == wanted);
    let Some(mut best) = again(&found.choices) else { return found };
    let mut at = 0;
    while at < best.choices.len() {
        let mut without_it = best.choices.clone();
        without_it.remove(at);
        let mut as_usual = best.choices.clone();
        as_usual[at] = 0;
        let shorter = |tried: &Found| tried.story.len() < best.story.len();
        let tries = [&without_it, &as_usual].into_iter().filter(|tried| **tried != best.choices);
        match tries.filter_map(|choices| again(choices)).find(shorter) {
            Some(shorter) => (best, at) = (shorter, 0),
            None => at += 1,
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::SCOPES;

    #[test]
    fn the_order_in_which_worlds_are_walked_changes_nothing() {
        let named = ["a session is opened", "three sessions are bought under a cap for two", "a static order is placed"];
        for scope in SCOPES.iter().filter(|scope| named.contains(&scope.name)) {
            let limits = if scope.cap.is_some() { (1, 1, 1) } else { (2, 0, 1) };
            let [one, other] = [false, true].map(|is_turned| walk(scope, Some(limits), None, is_turned));
            assert_eq!((one.states, one.ends, one.found.is_some()), (other.states, other.ends, false), "{}", scope.name);
        }
    }
}
