//! Every world that can come of a scope, each once: a state that was seen is not walked again.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hopline::policy::Rule;
use rustc_hash::FxHasher;

use crate::scope::Scope;
use crate::world::{Budget, World, Wrong};

/// What came of looking.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// Different worlds.
    pub states: u64,
    /// Worlds that were brought to a fair end.
    pub ends: u64,
    /// What was found to be wrong first.
    pub found: Option<Found>,
}

/// Something wrong, and how to come there again.
#[derive(Debug, Clone)]
pub struct Found {
    /// What is wrong.
    pub wrong: String,
    /// What was chosen, from the beginning; from there on the first of all that may happen.
    pub choices: Vec<u16>,
    /// What happened.
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

/// The worlds that were seen, in parts so that threads seldom wait for each other.
struct Seen(Vec<Mutex<HashSet<u64, BuildHasherDefault<FxHasher>>>>);

impl Seen {
    fn is_new(&self, world: &World) -> bool {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        let state = hasher.finish();
        let part = &self.0[(state >> 58) as usize];
        part.lock().unwrap_or_else(PoisonError::into_inner).insert(state)
    }
}

/// Looks at every world of a scope, up to the first that is wrong.
pub fn explore(scope: &'static Scope, limits: Limits, without: Option<Rule>) -> Explored {
    let first = match begin(scope, limits, without, false) {
        Ok(world) => world,
        Err(wrong) => return Explored { found: Some(Found { wrong, choices: Vec::new(), story: Vec::new() }), ..Explored::default() },
    };
    let seen = Seen((0..64).map(|_| Mutex::default()).collect());
    let queue = Mutex::new(vec![Node { world: first, choices: Vec::new() }]);
    let (states, ends, busy) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let found: Mutex<Option<Found>> = Mutex::new(None);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let walk = || {
        let mut stack: Vec<Node> = Vec::new();
        loop {
            let node = match stack.pop() {
                Some(node) => node,
                None => {
                    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                    match queue.pop() {
                        Some(node) => {
                            busy.fetch_add(1, Ordering::SeqCst);
                            drop(queue);
                            stack.push(node);
                            continue;
                        }
                        None if busy.load(Ordering::SeqCst) == 0 => return,
                        None => {
                            drop(queue);
                            std::thread::sleep(std::time::Duration::from_micros(200));
                            continue;
                        }
                    }
                }
            };
            if found.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                stack.clear();
            } else {
                states.fetch_add(1, Ordering::Relaxed);
                for (at, act) in node.world.acts().iter().enumerate() {
                    let mut world = node.world.clone();
                    let done = world.act(act);
                    let choices = || node.choices.iter().copied().chain([at as u16]).collect::<Vec<u16>>();
                    match done {
                        Err(wrong) => {
                            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                            found.get_or_insert_with(|| Found { wrong, choices: choices(), story: Vec::new() });
                        }
                        Ok(()) if *act == crate::act::Act::End => _ = ends.fetch_add(1, Ordering::Relaxed),
                        Ok(()) if seen.is_new(&world) => stack.push(Node { world, choices: choices() }),
                        Ok(()) => {}
                    }
                }
                // Work for whoever has none: the oldest, which has most below it.
                if stack.len() > 8 && busy.load(Ordering::Relaxed) < cores {
                    queue.lock().unwrap_or_else(PoisonError::into_inner).push(stack.remove(0));
                }
            }
            if stack.is_empty() {
                busy.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(walk);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found = found.map(|found| shrink(scope, limits, without, found));
    Explored { states: states.into_inner(), ends: ends.into_inner(), found }
}

fn begin(scope: &'static Scope, limits: Limits, without: Option<Rule>, tells: bool) -> Result<World, Wrong> {
    let mut world = World::new(scope, without, tells)?;
    if let Some((faults, troubles, acts)) = limits {
        world.budget = Budget { faults, troubles, acts };
    }
    Ok(world)
}

/// Comes to a world again by what was chosen, and goes on as if nothing more went wrong. What is wrong, if anything, with its story.
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
        if *act == crate::act::Act::End {
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
