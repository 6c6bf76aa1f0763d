//! The map of the file as one picture: a square for each extent, coloured by whose it is, filled as far as it is full; below it
//! how each series table was written.

mod writes;

use std::fmt::Write;

use counterfoil::{Extent, Inspection, Region};

use crate::inspect::{bytes, extent_bytes, region};

const SQUARE: usize = 12;
const COLUMNS: usize = 64;
const MARGIN: usize = 24;
const HEAD: usize = 92;
/// More squares than this would be no picture any more: then a square stands for several extents.
const SQUARES_MAX: usize = 64 * 64;
/// Colours that differ in lightness too, for eyes that tell few hues apart.
const COLORS: [&str; 5] = ["#4a5568", "#dd8a1d", "#2b6cb0", "#6b8e23", "#e2e8f0"];

/// Draws it as SVG.
pub fn draw(inspection: &Inspection, name: &str) -> String {
    let together = inspection.extents.len().div_ceil(SQUARES_MAX).max(1);
    let squares: Vec<&[Extent]> = inspection.extents.chunks(together).collect();
    let rows = squares.len().div_ceil(COLUMNS).max(1);
    let width = 2 * MARGIN + COLUMNS * SQUARE;
    let map_height = HEAD + rows * SQUARE + MARGIN;
    let shown = &inspection.series[..inspection.series.len().min(writes::TABLES_MAX)];
    let height = map_height + shown.len() * writes::HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    head(&mut svg, inspection, name, together);
    for (index, extents) in squares.iter().enumerate() {
        let (x, y) = (MARGIN + index % COLUMNS * SQUARE, HEAD + index / COLUMNS * SQUARE);
        square(&mut svg, extents, inspection.extent_pages, x, y, index * together);
    }
    for (index, series) in shown.iter().enumerate() {
        writes::draw(&mut svg, series, map_height + index * writes::HEIGHT);
    }
    svg.push_str("</svg>\n");
    svg
}

fn head(svg: &mut String, inspection: &Inspection, name: &str, together: usize) {
    let title =
        format!("{}: {} on the medium, commit {}", escaped(name), bytes(inspection.medium_bytes), inspection.commit);
    add(svg, format_args!("<text x=\"{MARGIN}\" y=\"30\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n"));
    let each = bytes(extent_bytes(inspection) * together as u64);
    add(svg, format_args!("<text x=\"{MARGIN}\" y=\"50\">a square is {each}, dark as far as it is filled</text>\n"));
    let shown = [Region::Fixed, Region::Spine, Region::Group(0), Region::Pool(0), Region::Free];
    let mut x = MARGIN;
    for one in shown {
        let (order, name) = region(one);
        add(
            svg,
            format_args!(
                "<rect x=\"{x}\" y=\"62\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"73\">{name}</text>\n",
                COLORS[order],
                x + 18
            ),
        );
        x += 42 + name.len() * 7;
    }
}

fn square(svg: &mut String, extents: &[Extent], extent_pages: u32, x: usize, y: usize, first: usize) {
    // Of several extents the picture shows what most of them are.
    let count = |wanted: usize| extents.iter().filter(|extent| region(extent.region).0 == wanted).count();
    let order = (0..COLORS.len()).max_by_key(|order| count(*order)).unwrap_or(0);
    let whole = matches!(order, 0 | 1);
    let live: u64 = extents.iter().map(|extent| u64::from(extent.live_pages)).sum();
    let pages = extents.len() as u64 * u64::from(extent_pages.max(1));
    let side = SQUARE - 1;
    let filled = if whole { side } else { (live * side as u64).div_ceil(pages).min(side as u64) as usize };
    let color = COLORS[order];
    let name = region(extents.first().map_or(Region::Free, |extent| extent.region)).1;
    add(
        svg,
        format_args!(
            "<g><title>extent {first}: {name}, {live} of {pages} pages live</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{color}\" fill-opacity=\"0.25\"/>"
        ),
    );
    if filled > 0 && order != 4 {
        let top = y + side - filled;
        add(svg, format_args!("<rect x=\"{x}\" y=\"{top}\" width=\"{side}\" height=\"{filled}\" fill=\"{color}\"/>"));
    }
    svg.push_str("</g>\n");
}

fn add(svg: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = svg.write_fmt(what);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
