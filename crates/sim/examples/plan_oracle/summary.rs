//! From cells to figures.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::block::Cell;

/// Goals of the project: the median, and the worst cell.
const MEDIAN: f64 = 1.03;
const WORST: f64 = 1.15;
/// Cells that are printed in full.
const SHOWN: usize = 20;

/// Figures over all cells and over each provider and workload, and the worst cells in full.
pub(crate) fn summary(cells: &[Cell], every: bool) -> Value {
    let mut groups: BTreeMap<(&str, String), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let workload = format!("{} {}", cell.workload, cell.coding);
        groups
            .entry((cell.provider, workload))
            .or_default()
            .push(cell);
    }
    let by: Vec<Value> = groups
        .iter()
        .map(|((provider, workload), cells)| {
            let mut figures = figures(cells);
            figures["provider"] = json!(provider);
            figures["workload"] = json!(workload);
            figures
        })
        .collect();
    let mut worst: Vec<&Cell> = cells.iter().collect();
    worst.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let mut document = figures(&cells.iter().collect::<Vec<_>>());
    document["by"] = json!(by);
    document["worst_cells"] = json!(&worst[..worst.len().min(SHOWN)]);
    if every {
        document["every"] = json!(cells);
    }
    document
}

fn figures(cells: &[&Cell]) -> Value {
    let sorted = |ratio: fn(&Cell) -> f64| {
        let mut ratios: Vec<f64> = cells.iter().map(|cell| ratio(cell)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let ratios = sorted(|cell| cell.ratio);
    let to_all = sorted(|cell| cell.ratio_to_all);
    let planning = sorted(|cell| cell.ours.planning_seconds / cell.ours.seconds);
    let median = |ratios: &[f64]| ratios.get(ratios.len() / 2).copied();
    let share = |above: f64| {
        let count = ratios.iter().filter(|ratio| **ratio > above).count();
        count as f64 / ratios.len().max(1) as f64
    };
    json!({
        "cells": cells.len(),
        "median": median(&ratios),
        "worst": ratios.last(),
        "share_above_median_goal": share(MEDIAN),
        "share_above_worst_goal": share(WORST),
        "median_to_all": median(&to_all),
        "worst_to_all": to_all.last(),
        "planning_share_median": median(&planning),
        "planning_share_worst": planning.last(),
    })
}
