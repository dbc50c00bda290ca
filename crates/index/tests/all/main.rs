//! Everything that needs more than one module.

#[cfg(test)]
mod compact;
#[cfg(test)]
mod extremes;
mod oracle;
#[cfg(test)]
mod serde_forms;

#[test]
fn random_selections_agree_with_the_naive_model() {
    for seed in 0..4000 {
        let case = oracle::Case::random(seed);
        if let Err(difference) = case.check() {
            panic!("seed {seed}: {difference}\n{case:?}");
        }
    }
}
