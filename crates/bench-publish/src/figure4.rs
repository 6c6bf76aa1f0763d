//! Figure 4: from which size of partitions on filters are smaller than boundary values, by formula (5).

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Figure, Legend, Look, Panel, RGBColor};

use crate::Failure;

/// What the paper states: distinct values of R.A for one of S.B, values in a partition.
const STATED: [(f64, f64); 2] = [(1.0, 2.83), (10.0, 6.29)];
/// z is to stay below this.
const PLANE: f64 = 0.75;

/// The left side of the paper's sufficient condition: filters with eight bits a value.
fn z(ratio: f64, partition: f64) -> f64 {
    0.0432 * ratio + 2.0 / partition
}

/// The smallest partition that pays; none if no size does.
fn least(ratio: f64) -> Option<f64> {
    let left = PLANE - 0.0432 * ratio;
    (left > 0.0).then(|| 2.0 / left)
}

pub fn print(folder: Option<&Path>) -> Result<(), Failure> {
    println!("\nz = 0.0432 I_A/I_B + 2 p/I_B, below {PLANE} where filters pay");
    print!("{:>10}", "I_A/I_B");
    let partitions = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 64.0, 256.0];
    partitions.iter().for_each(|partition| print!(" {partition:>7}"));
    println!(" {:>8} {:>8}", "least", "paper");
    let ratios = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 14.0, 17.0];
    for ratio in ratios {
        print!("{ratio:>10}");
        partitions.iter().for_each(|partition| print!(" {:>7.3}", z(ratio, *partition)));
        let stated = STATED.iter().find(|stated| stated.0 == ratio).map_or("-".into(), |stated| stated.1.to_string());
        println!(" {:>8} {stated:>8}", least(ratio).map_or("-".into(), |least| format!("{least:.2}")));
    }
    let Some(folder) = folder else { return Ok(()) };
    let points = (10..=160).map(|tenth| f64::from(tenth) / 10.0).filter_map(|ratio| Some((ratio, least(ratio)?)));
    let line = Curve::new("z = 0.75: filters pay above", Look::Line(RGBColor(20, 90, 170)), points.collect());
    let stated = Curve::new("the paper", Look::Crosses(RGBColor(60, 60, 60)), STATED.to_vec());
    let figure = Figure {
        x: Axis::plain("I_A / I_B", 1.0..16.0),
        y: Axis::plain("values in a partition (I_B / p)", 0.0..40.0),
        legend: Legend::UpperLeft,
        panels: vec![Panel {
            title: "Where filters are smaller than boundary values".into(),
            curves: vec![line, stated],
        }],
    };
    Ok(figure.draw(&folder.join("publish-join-settings.svg"))?)
}

#[cfg(test)]
mod tests {
    use super::{PLANE, STATED, least, z};

    #[test]
    fn the_border_is_where_the_paper_says_that_it_is() {
        for (ratio, partition) in STATED {
            let least = least(ratio).expect("some size pays");
            assert!((least - partition).abs() < 0.005, "{least} for {partition}");
            assert!(z(ratio, least + 0.01) < PLANE && z(ratio, least - 0.01) > PLANE);
        }
        assert!(least(17.4).is_none());
    }
}
