//! The behaviour of the client in 6000 lives, as one number. A refactoring leaves it unchanged; a change of behaviour changes it once,
//! and the description of that change says so. `TRANSCRIPTS=FILE` writes the number of each life.

use hopline_world::{Kind, side_by_side, transcript};

const LIVES: u64 = 1000;
const ALL: u64 = 11765648152484248361;

#[test]
fn the_client_does_what_it_did() {
    let lives: Vec<(Kind, u64)> = Kind::ALL.into_iter().flat_map(|kind| (0..LIVES).map(move |seed| (kind, seed))).collect();
    let numbers = side_by_side(&lives, |(kind, seed)| transcript(*kind, *seed));
    let each: Vec<(Kind, u64, u64)> = lives.into_iter().zip(numbers).map(|((kind, seed), number)| (kind, seed, number)).collect();
    if let Ok(file) = std::env::var("TRANSCRIPTS") {
        let lines: Vec<String> = each.iter().map(|(kind, seed, number)| format!("{kind:?} {seed} {number:016x}\n")).collect();
        std::fs::write(file, lines.concat()).expect("can be written");
    }
    let all = each.iter().fold(0_u64, |all, (_, _, number)| all.rotate_left(5) ^ number);
    assert_eq!(all, ALL, "the steps are others than before");
}
