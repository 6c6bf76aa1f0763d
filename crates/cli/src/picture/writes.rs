//! How a series table was written: where its newest pages lie in the order of their writes, and how far apart writes were.
//!
//! Writes one beside the other are a rising line; the nearer to one, the cheaper for flash (Chronos, section 2).

use counterfoil::{SeriesPage, SeriesUse};

use super::{COLORS, MARGIN, add, escaped};
use crate::inspect::bytes;

/// What one table takes.
pub const HEIGHT: usize = 264;
/// More tables than these are no picture any more.
pub const TABLES_MAX: usize = 16;
const TOP: usize = 52;
const PLOT_HEIGHT: usize = 168;
const PLOT_WIDTH: usize = 460;
const BARS_LEFT: usize = MARGIN + PLOT_WIDTH + 60;
const BARS_WIDTH: usize = 220;
/// More points than this lie on one another.
const POINTS_MAX: usize = 4000;
/// What leaves and nodes are drawn with.
const LEAF: &str = COLORS[3];
const NODE: &str = COLORS[1];

/// Draws it, from a height on.
pub fn draw(svg: &mut String, series: &SeriesUse, top: usize) {
    let title = format!(
        "{}: {} points of {} series, {}, {:.2} bytes a point",
        escaped(&series.table),
        series.points,
        series.series,
        bytes(series.bytes),
        series.bytes_per_point()
    );
    text(svg, (MARGIN, top + 18), "font-weight=\"bold\"", &title);
    text(svg, (MARGIN, top + 40), "", "where the newest pages lie, in the order of their writes");
    text(svg, (BARS_LEFT, top + 40), "", "pages from write to write");
    frame(svg, (MARGIN, top + TOP), PLOT_WIDTH);
    let every = series.newest.len().div_ceil(POINTS_MAX).max(1);
    for (index, page) in series.newest.iter().enumerate().step_by(every) {
        point(svg, series, (index, page), top + TOP);
    }
    legend(svg, top + TOP + PLOT_HEIGHT + 22);
    bars(svg, &series.write_distances, top + TOP);
}

fn text(svg: &mut String, (x, y): (usize, usize), style: &str, what: &str) {
    add(svg, format_args!("<text x=\"{x}\" y=\"{y}\" {style}>{what}</text>\n"));
}

fn frame(svg: &mut String, (x, y): (usize, usize), width: usize) {
    add(
        svg,
        format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{PLOT_HEIGHT}\" fill=\"none\" stroke=\"#a0aec0\"/>\n"
        ),
    );
}

fn point(svg: &mut String, series: &SeriesUse, (index, page): (usize, &SeriesPage), top: usize) {
    let along = |at: u64, of: u64, pixels: usize| at as f64 / of.max(1) as f64 * (pixels - 4) as f64;
    let x = MARGIN as f64 + 1.0 + along(index as u64, series.newest.len() as u64, PLOT_WIDTH);
    // A pool that gave extents back has pages beyond what it has now.
    let place = along(page.page, series.pool_pages, PLOT_HEIGHT).min((PLOT_HEIGHT - 4) as f64);
    let y = (top + PLOT_HEIGHT - 3) as f64 - place;
    let (side, color) = if page.is_leaf { (2, LEAF) } else { (3, NODE) };
    add(svg, format_args!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{side}\" height=\"{side}\" fill=\"{color}\"/>\n"));
}

fn legend(svg: &mut String, y: usize) {
    for (x, color, what) in [(MARGIN, LEAF, "pages of points"), (MARGIN + 140, NODE, "pages above them")] {
        let square = y - 10;
        add(svg, format_args!("<rect x=\"{x}\" y=\"{square}\" width=\"10\" height=\"10\" fill=\"{color}\"/>\n"));
        text(svg, (x + 16, y), "", what);
    }
}

/// Shares of the writes by their distance.
fn bars(svg: &mut String, distances: &[u64], top: usize) {
    frame(svg, (BARS_LEFT, top), BARS_WIDTH);
    let (writes, most) = (distances.iter().sum::<u64>().max(1), distances.iter().max().copied().unwrap_or(0).max(1));
    let width = BARS_WIDTH / distances.len().max(1);
    for (bucket, count) in distances.iter().enumerate() {
        let height = (*count * (PLOT_HEIGHT as u64 - 8)).div_ceil(most) as usize;
        let (x, y) = (BARS_LEFT + bucket * width + 1, top + PLOT_HEIGHT - height);
        let (up_to, percent) = (1_u64 << bucket, 100.0 * *count as f64 / writes as f64);
        add(
            svg,
            format_args!(
                "<g><title>up to {up_to}: {count} writes, {percent:.1} %</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" \
                 height=\"{height}\" fill=\"{LEAF}\"/></g>\n",
                width - 2
            ),
        );
        if bucket % 3 == 0 {
            text(svg, (x, top + PLOT_HEIGHT + 16), "font-size=\"10\"", &up_to.to_string());
        }
    }
}
