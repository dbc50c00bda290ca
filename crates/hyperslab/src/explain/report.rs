//! Plans as text and as JSON.

use hyperslab_plan::{Estimate, Method};
use serde_json::{Value, json};

use super::{Explanation, Measured};
use crate::text::size;
use crate::text::table::{Side, lay_out};

impl Explanation {
    /// A table for people: the plan, what was measured of it, and the alternatives.
    pub fn text(&self, measured: Option<&Measured>) -> String {
        render(self, measured)
    }

    /// All of it for machines.
    pub fn json(&self, measured: Option<&Measured>) -> Value {
        as_json(self, measured)
    }
}

fn counts(explained: &Explanation) -> [(&'static str, usize); 5] {
    let count = |which: fn(&Method) -> bool| {
        let methods = explained.chunks.iter().map(|chunk| &chunk.method);
        methods.filter(|method| which(method)).count()
    };
    // Chunks of which nothing is fetched.
    let idle = |cached: bool| {
        let none = |method: &Method| matches!(method, Method::Ranges(r) if r.is_empty());
        let chunks = explained.chunks.iter();
        chunks
            .filter(|chunk| none(&chunk.method) && (chunk.cached > 0) == cached)
            .count()
    };
    [
        ("get", count(|m| matches!(m, Method::Get))),
        (
            "range",
            count(|m| matches!(m, Method::Ranges(r) if !r.is_empty())),
        ),
        ("function", count(|m| matches!(m, Method::Function(_)))),
        ("cache", idle(true)),
        ("nothing stored", idle(false)),
    ]
}

fn render(explained: &Explanation, measured: Option<&Measured>) -> String {
    let by_method: Vec<String> = counts(explained)
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{n} by {name}"))
        .collect();
    let network = explained.model.network();
    let mut text = format!(
        "chunks     {}: {}\nwanted     {}\ncached     {}\nnetwork    {:.1} ms, {}/s a connection, {}/s in all, window {}\nφ          {} s per dollar\n\n",
        explained.chunks.len(),
        by_method.join(", "),
        size::show(explained.useful),
        size::show(explained.cached),
        network.latency_seconds * 1e3,
        size::show(network.connection_bandwidth as u64),
        size::show(network.peak() as u64),
        explained.model.window(),
        explained.model.phi(),
    );
    let header = ["plan", "requests", "calls", "bytes", "seconds", "dollars"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.push(row(
        &format!("{} (chosen)", explained.mode),
        &explained.estimate,
    ));
    if let Some(measured) = measured {
        rows.push(vec![
            "  measured".into(),
            measured.requests.to_string(),
            String::new(),
            size::show(measured.bytes),
            format!("{:.4}", measured.seconds),
            String::new(),
        ]);
    }
    for (mode, estimate) in &explained.alternatives {
        rows.push(row(&mode.to_string(), estimate));
    }
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ];
    text.push_str(&lay_out(&sides, &rows));
    if !explained.copies.is_empty() {
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows[0][0] = "copy".into();
        for copy in &explained.copies {
            let name = copy.name.as_deref().unwrap_or("original");
            let chosen = if copy.chosen { " (answers)" } else { "" };
            rows.push(row(&format!("{name}{chosen}"), &copy.estimate));
        }
        text.push('\n');
        text.push_str(&lay_out(&sides, &rows));
    }
    text
}

fn row(name: &str, estimate: &Estimate) -> Vec<String> {
    vec![
        name.to_owned(),
        estimate.requests.to_string(),
        estimate.calls.to_string(),
        size::show(estimate.bytes),
        format!("{:.4}", estimate.seconds),
        format!("{:.3e}", estimate.dollars),
    ]
}

fn as_json(explained: &Explanation, measured: Option<&Measured>) -> Value {
    let chunks: Vec<Value> = explained
        .chunks
        .iter()
        .map(|chunk| {
            json!({
                "chunk": chunk.chunk,
                "key": chunk.key,
                "method": chunk.method,
                "useful": chunk.useful,
                "bytes": chunk.bytes,
                "cached": chunk.cached,
            })
        })
        .collect();
    let alternatives: Vec<Value> = explained
        .alternatives
        .iter()
        .map(|(mode, estimate)| json!({"planner": mode.to_string(), "estimate": estimate}))
        .collect();
    json!({
        "planner": explained.mode.to_string(),
        "useful": explained.useful,
        "cached": explained.cached,
        "estimate": explained.estimate,
        "measured": measured.map(|m| json!({
            "seconds": m.seconds, "requests": m.requests, "bytes": m.bytes,
        })),
        "alternatives": alternatives,
        "copies": explained.copies.iter().map(|copy| json!({
            "name": copy.name,
            "chosen": copy.chosen,
            "estimate": copy.estimate,
        })).collect::<Vec<_>>(),
        "chunks": chunks,
    })
}
