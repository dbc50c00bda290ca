//! Tests of the planners against exhaustive search and against each other.

use hyperslab_plan::oracle::{Random, exhaustive, random_model, random_query};
use hyperslab_plan::{Load, Mode, Plan, plan};

/// Every mode, on many random queries, covers every byte once and keeps the function's limits.
#[test]
fn every_plan_is_valid() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let model = random_model(&mut random).unwrap();
        let query = random_query(&mut random, 8, 60).unwrap();
        for mode in Mode::ALL.into_iter().chain([1, 2, 5, 50].map(Mode::Splits)) {
            let plan = plan(&query, &model, mode);
            assert_eq!(plan.check(&query, &model), Ok(()), "seed {seed}, {mode}");
        }
    }
}

fn cost(model: &hyperslab_plan::Model, plan: &Plan) -> f64 {
    model.weigh(plan.estimate.seconds, plan.estimate.dollars)
}

#[test]
fn global_is_never_costlier_than_paper_or_a_forced_mode() {
    for seed in 0..500 {
        let mut random = Random::new(1_000_000 + seed);
        let model = random_model(&mut random).unwrap();
        let query = random_query(&mut random, 12, 200).unwrap();
        let ours = cost(&model, &plan(&query, &model, Mode::Global));
        let bound = model.bound(&query);
        assert!(
            bound <= ours * (1.0 + 1e-9),
            "seed {seed}: {ours} is below the bound {bound}"
        );
        for mode in [
            Mode::Paper,
            Mode::Get,
            Mode::RangeMerge,
            Mode::RangeFetch,
            Mode::Function,
            Mode::FunctionWhole,
        ] {
            let other = cost(&model, &plan(&query, &model, mode));
            assert!(
                ours <= other * (1.0 + 1e-9),
                "seed {seed}, {mode}: {ours} > {other}"
            );
        }
    }
}

/// Within 1 % of the best of all plans, on small instances.
#[test]
fn global_is_as_good_as_exhaustive_search() {
    let mut worst: f64 = 1.0;
    for seed in 0..500 {
        let mut random = Random::new(2_000_000 + seed);
        let model = random_model(&mut random).unwrap();
        let query = random_query(&mut random, 3, 9).unwrap();
        let best = exhaustive(&query, &model, 3, 4);
        let ours = cost(&model, &plan(&query, &model, Mode::Global));
        if ours > best * 1.01 {
            println!("seed {seed}: {ours} against {best}, {}", ours / best);
        }
        worst = worst.max(ours / best);
    }
    assert!(worst <= 1.01, "{worst}");
}

#[test]
fn the_estimate_is_that_of_the_methods() {
    let mut random = Random::new(7);
    let model = random_model(&mut random).unwrap();
    let query = random_query(&mut random, 5, 40).unwrap();
    let plan = plan(&query, &model, Mode::Global);
    let load = Load::of(&query, &model, &plan.methods, &plan.bundles);
    assert_eq!(plan.estimate.requests, load.requests);
    assert_eq!(plan.estimate.bytes, load.bytes + load.answered);
    assert!((plan.estimate.seconds - model.seconds(&load)).abs() < 1e-12);
}
