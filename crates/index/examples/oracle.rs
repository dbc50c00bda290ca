//! Compares random selections with the naive model and counts the differences.
//!
//! ```text
//! cargo run -p hyperslab-index --example oracle -- [SELECTIONS [FIRST_SEED]]
//! ```
//! The defaults are 100000 and 0. The exit code is 1 if anything differs, and 2 if the arguments
//! are wrong.

use std::process::ExitCode;

#[path = "../tests/all/oracle/mod.rs"]
mod oracle;

fn main() -> ExitCode {
    let mut numbers = [100_000, 0];
    for (at, argument) in std::env::args().skip(1).enumerate() {
        match (numbers.get_mut(at), argument.parse()) {
            (Some(number), Ok(value)) => *number = value,
            _ => {
                eprintln!("cannot use '{argument}': give a number of selections and a first seed");
                return ExitCode::from(2);
            }
        }
    }
    let [many, first] = numbers;
    let mut differences = 0u64;
    for seed in (first..u64::MAX).take(usize::try_from(many).unwrap_or(usize::MAX)) {
        let case = oracle::Case::random(seed);
        if let Err(difference) = case.check() {
            differences += 1;
            if differences <= 10 {
                eprintln!("seed {seed}: {difference}\n  {case:?}");
            }
        }
    }
    println!("{many} selections from seed {first}: {differences} differences");
    ExitCode::from(u8::from(differences > 0))
}
