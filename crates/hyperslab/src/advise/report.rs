//! Advice as text, as JSON, and as commands that follow it.

use hyperslab_layout::{Expected, Layout};
use serde_json::{Value, json};

use super::{Advice, Choice, Objective};
use crate::text::size;
use crate::text::table::{Side, lay_out};

/// Endings of the names of HDF5 files.
const FILE_ENDINGS: [&str; 5] = [".h5", ".hdf5", ".he5", ".nc", ".nc4"];

impl Advice {
    /// For people: how it is read, what that takes, and what would take less.
    pub fn text(&self) -> String {
        let mut text = format!(
            "array      {} ({}, {} stored)\nreads      {}\ntoday      {}\n",
            self.url,
            sides(&self.shape),
            size::show(self.stored),
            match self.reads {
                Some(reads) => format!(
                    "{}, in {}",
                    size::many(reads, "read"),
                    size::many(self.pattern.classes().len() as u64, "class")
                ),
                None => size::many(self.pattern.classes().len() as u64, "class"),
            },
            layout(&self.today.layouts[0]),
        );
        for (number, copy) in self.proposed.layouts.iter().enumerate() {
            let name = if number == 0 {
                "proposed"
            } else {
                "and a copy"
            };
            text.push_str(&format!("{name:<11}{}\n", layout(copy)));
        }
        text.push('\n');
        text.push_str(&self.table());
        text.push_str(&format!("\n{}\n", self.verdict()));
        if let Some(colder) = &self.colder {
            text.push_str(&format!("\n{}\n", colder_text(colder)));
        }
        if self.is_worth_it() {
            text.push_str("\nTo do it:\n");
            for command in self.commands() {
                text.push_str(&format!("  {command}\n"));
            }
        }
        text
    }

    fn table(&self) -> String {
        let header = [
            "reads", "share", "chunks", "then", "requests", "then", "bytes", "then", "seconds",
            "then", "saves",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (number, class) in self.pattern.classes().iter().enumerate() {
            rows.push(self.row(
                sides(&class.extent),
                class.weight,
                (
                    &self.today.by_class[number],
                    self.today.blocks_by_class[number],
                ),
                (
                    &self.proposed.by_class[number],
                    self.proposed.blocks_by_class[number],
                ),
            ));
        }
        rows.push(self.row(
            "all".into(),
            1.0,
            (&self.today.expected, self.today.blocks),
            (&self.proposed.expected, self.proposed.blocks),
        ));
        let mut columns = vec![Side::Left];
        columns.extend([Side::Right; 10]);
        lay_out(&columns, &rows)
    }

    fn row(
        &self,
        name: String,
        share: f64,
        (now, blocks_now): (&Expected, f64),
        (then, blocks_then): (&Expected, f64),
    ) -> Vec<String> {
        let saved = match self.objective {
            Objective::Cost => 1.0 - then.cost / now.cost,
            Objective::Blocks { .. } => 1.0 - blocks_then / blocks_now,
        };
        vec![
            name,
            format!("{:.1} %", share * 100.0),
            format!("{blocks_now:.1}"),
            format!("{blocks_then:.1}"),
            format!("{:.1}", now.requests),
            format!("{:.1}", then.requests),
            size::show(now.bytes as u64),
            size::show(then.bytes as u64),
            format!("{:.4}", now.seconds),
            format!("{:.4}", then.seconds),
            format!("{:.0} %", saved * 100.0),
        ]
    }

    fn verdict(&self) -> String {
        let (now, then) = (self.measure(&self.today), self.measure(&self.proposed));
        let what = match self.objective {
            Objective::Cost => "what reads cost",
            Objective::Blocks { .. } => "the blocks that reads touch",
        };
        match self.is_worth_it() {
            true => format!(
                "The proposal takes {:.1} times less of {what}.",
                now / then.max(f64::MIN_POSITIVE)
            ),
            false => format!("Nothing that was looked at takes much less of {what}."),
        }
    }

    /// The commands that do what is advised. The array is moved to a new name beside it, so that
    /// nothing is lost.
    pub fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for (number, copy) in self.proposed.layouts.iter().enumerate() {
            let mut options = format!(" --chunks {}", joined(&copy.chunk));
            if let Some(shard) = &copy.shard {
                options += &format!(" --shards {}", joined(shard));
                if !is_row_major(&copy.shard_order) {
                    options += &format!(" --shard-order {}", joined(&copy.shard_order));
                }
            }
            if !is_row_major(&copy.order) {
                options += &format!(" --order {}", joined(&copy.order));
            }
            let url = quoted(&self.url);
            commands.push(match number {
                0 if copy == &self.today.layouts[0] => continue,
                0 => format!(
                    "hyperslab rechunk {url} {}{options}",
                    quoted(&self.beside())
                ),
                _ => format!("hyperslab replicas create {url}{options}"),
            });
        }
        commands
    }

    /// A name for the array in its new layout.
    fn beside(&self) -> String {
        let url = self.url.trim_end_matches('/');
        // Nothing is written into a file: what is advised for its datasets becomes a hierarchy beside it.
        for ending in FILE_ENDINGS {
            let inside = format!("{ending}/");
            if let Some((file, dataset)) = url.split_once(&inside) {
                return format!("{file}.zarr/{dataset}");
            }
        }
        match url.rsplit_once('.') {
            Some((stem, ending)) if !ending.contains('/') => format!("{stem}-rechunked.{ending}"),
            _ => format!("{url}-rechunked"),
        }
    }

    /// The first layout, as `rechunk --apply-advice` takes it.
    pub fn layout_json(&self) -> Value {
        layout_json(&self.proposed.layouts[0])
    }

    /// All of it for machines.
    pub fn json(&self) -> Value {
        let classes: Vec<Value> = self
            .pattern
            .classes()
            .iter()
            .enumerate()
            .map(|(number, class)| {
                json!({
                    "extent": class.extent,
                    "weight": class.weight,
                    "today": choice_of(&self.today, number),
                    "proposed": choice_of(&self.proposed, number),
                })
            })
            .collect();
        json!({
            "url": self.url,
            "shape": self.shape,
            "stored_bytes": self.stored,
            "reads": self.reads,
            "classes": classes,
            "today": choice(&self.today),
            "proposed": choice(&self.proposed),
            "worth_it": self.is_worth_it(),
            "commands": if self.is_worth_it() { self.commands() } else { Vec::new() },
            "colder": self.colder.as_ref().map(|colder| json!({
                "classes": colder.classes.iter().map(|(name, objects, bytes)| {
                    json!({"name": name, "objects": objects, "bytes": bytes})
                }).collect::<Vec<_>>(),
                "dollars_a_month_now": colder.dollars_now,
                "dollars_a_month_then": colder.dollars_then,
                "short_trace": colder.short_trace,
            })),
        })
    }
}

fn colder_text(colder: &super::Colder) -> String {
    let moved: Vec<String> = colder
        .classes
        .iter()
        .skip(1)
        .filter(|(_, objects, _)| *objects > 0)
        .map(|(name, objects, bytes)| {
            format!(
                "{} ({}) to {name}",
                size::many(*objects, "object"),
                size::show(*bytes)
            )
        })
        .collect();
    let mut text = match moved.is_empty() {
        true => "No object would cost less in another class of storage.".to_owned(),
        false => format!(
            "Storage would cost ${:.4} a month instead of ${:.4} with {}.",
            colder.dollars_then,
            colder.dollars_now,
            moved.join(" and ")
        ),
    };
    if colder.short_trace {
        text.push_str(" The trace is shorter than an hour, which says little about a month.");
    }
    text
}

fn choice(choice: &Choice) -> Value {
    json!({
        "layouts": choice.layouts.iter().map(layout_json).collect::<Vec<_>>(),
        "blocks": choice.blocks,
        "expected": expected(&choice.expected),
    })
}

fn choice_of(choice: &Choice, class: usize) -> Value {
    json!({
        "copy": choice.copy_of[class],
        "blocks": choice.blocks_by_class[class],
        "expected": expected(&choice.by_class[class]),
    })
}

fn expected(expected: &Expected) -> Value {
    json!({
        "cost": expected.cost,
        "seconds": expected.seconds,
        "dollars": expected.dollars,
        "requests": expected.requests,
        "bytes": expected.bytes,
    })
}

fn layout_json(layout: &Layout) -> Value {
    json!({
        "chunks": layout.chunk,
        "shards": layout.shard,
        "order": layout.order,
        "shard_order": layout.shard_order,
    })
}

fn layout(layout: &Layout) -> String {
    let mut text = format!("chunks of {}", sides(&layout.chunk));
    if let Some(shard) = &layout.shard {
        text += &format!(" in shards of {}", sides(shard));
        if !is_row_major(&layout.shard_order) {
            text += &format!(
                " (their chunks in the order {})",
                joined(&layout.shard_order)
            );
        }
    }
    if !is_row_major(&layout.order) {
        text += &format!(", axes in the order {}", joined(&layout.order));
    }
    text
}

fn is_row_major(order: &[usize]) -> bool {
    order.iter().copied().eq(0..order.len())
}

fn sides(sides: &[u64]) -> String {
    match sides {
        [] => "one cell".into(),
        _ => {
            let sides: Vec<String> = sides.iter().map(u64::to_string).collect();
            sides.join(" × ")
        }
    }
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    numbers.join(",")
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+=@%".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_whole() {
        assert_eq!(quoted("s3://b/a.zarr"), "s3://b/a.zarr");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(joined(&[1, 2]), "1,2");
    }
}
