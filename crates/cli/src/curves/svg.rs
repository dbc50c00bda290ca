//! A picture as SVG.
//!
//! Colours are named once, in a style sheet that knows light and dark; everything else has a class.
//!
//! Invariant: the file needs nothing but itself, neither fonts nor scripts.

use std::fmt::Write;

use super::picture::{Anchor, DOT, Picture, Shape, Stroke, Words};

const STYLE: &str = "<style>
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1c1c1c; } .heading { font-size: 16px; font-weight: 600; } .title { font-weight: 600; }
.note, .tick { fill: #555555; } .tick { font-size: 11px; }
.axis { stroke: #1c1c1c; fill: none; } .grid { stroke: #dddddd; fill: none; }
.line { stroke: #0b61a4; stroke-width: 2; fill: none; } .dot { fill: #0b61a4; }
.whisker { stroke: #b04a00; fill: none; } .band { fill: #0b61a4; fill-opacity: 0.12; }
@media (prefers-color-scheme: dark) {
svg { background: #16181c; } text { fill: #ececec; } .note, .tick { fill: #b0b0b0; }
.axis { stroke: #ececec; } .grid { stroke: #3a3d42; } .line { stroke: #6cb8f0; }
.dot { fill: #6cb8f0; } .whisker { stroke: #ffab66; } .band { fill: #6cb8f0; fill-opacity: 0.18; }
}
</style>
";

/// The text of an SVG file.
pub(crate) fn render(picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n{STYLE}<title>{}</title>\n",
        escaped(&picture.title)
    );
    for shape in &picture.shapes {
        // Writing to a string cannot fail.
        let _ = element(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn element(out: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Text {
            words,
            at: (x, y),
            anchor,
            text,
        } => {
            let class = match words {
                Words::Heading => "heading",
                Words::Title => "title",
                Words::Note => "note",
                Words::Tick => "tick",
            };
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let text = escaped(text);
            writeln!(
                out,
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            )
        }
        Shape::Upwards { at: (x, y), text } => {
            let text = escaped(text);
            writeln!(
                out,
                "<text class=\"note\" text-anchor=\"middle\" \
                 transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{text}</text>"
            )
        }
        Shape::Stroke { what, from, to } => {
            let class = match what {
                Stroke::Axis => "axis",
                Stroke::Grid => "grid",
                Stroke::Whisker => "whisker",
            };
            writeln!(
                out,
                "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
                from.0, from.1, to.0, to.1
            )
        }
        Shape::Band { corner, size } => writeln!(
            out,
            "<rect class=\"band\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            corner.0, corner.1, size.0, size.1
        ),
        Shape::Line(points) => {
            let places: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            writeln!(
                out,
                "<polyline class=\"line\" points=\"{}\"/>",
                places.join(" ")
            )
        }
        Shape::Dot((x, y)) => writeln!(
            out,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\"/>"
        ),
    }
}

/// Text that cannot be taken for markup; control characters have no place in XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(
            escaped("<a href=\"x\">&\n"),
            "&lt;a href=&quot;x&quot;&gt;&amp; "
        );
    }
}
