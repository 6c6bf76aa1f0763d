//! The paper's Tables 3 to 6 with ours and the peers' beside them, in Markdown.

use crate::paper::{self, Medium, mean, queries_of};
use crate::query::{Category, Query};
use crate::results::{Line, Results, extra};
use crate::system::System;
use crate::workload::TUPLE_BYTES;

/// Prints everything.
pub fn print(results: &Results) {
    let systems = results.systems();
    print_seconds(results, &systems);
    print_capacities(results, &systems);
    print_categories(results, &systems);
    print_loads(results, &systems);
    for difference in results.disagreements() {
        println!("answers differ: {difference}");
    }
}

fn head(before: &str, systems: &[&str]) {
    let columns: Vec<&str> = before.split('|').chain(systems.iter().copied()).collect();
    println!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

fn row(before: &str, cells: impl Iterator<Item = Option<String>>) {
    let cells: Vec<String> = cells.map(Option::unwrap_or_default).collect();
    println!("| {before} | {} |", cells.join(" | "));
}

/// Seconds with three digits.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0}"),
        s if s >= 1.0 => format!("{s:.1}"),
        s if s >= 0.01 => format!("{s:.3}"),
        s => format!("{s:.1e}"),
    }
}

/// A rate with three digits.
pub fn rate(rate: f64) -> String {
    match rate {
        r if r >= 1e8 => format!("{:.0} M", r / 1e6),
        r if r >= 1e6 => format!("{:.1} M", r / 1e6),
        r if r >= 1e3 => format!("{:.0} K", r / 1e3),
        r if r >= 100.0 => format!("{r:.0}"),
        r => format!("{r:.1}"),
    }
}

fn print_seconds(results: &Results, systems: &[&str]) {
    println!("### Execution time (Tables 3 and 5)\n");
    println!("Seconds; of the paper on disk / on flash.\n");
    let paper: Vec<String> = paper::SYSTEMS.iter().map(|name| format!("paper: {name}")).collect();
    head(&format!("query|paper: executed|{}|here: executed|tuples", paper.join("|")), systems);
    for query in Query::ALL {
        let of_paper: Vec<String> = (0..4)
            .map(|system| {
                let [disk, flash] = Medium::BOTH.map(|medium| seconds(medium.seconds(query, system)));
                format!("{disk} / {flash}")
            })
            .collect();
        let any = systems.iter().find_map(|system| results.find(system, query.name()));
        let here =
            any.map_or("| ".into(), |line| format!("{} | {}", count(line.executions), count(line.answer.tuples)));
        let before =
            format!("{} | {} | {} | {here}", query.name(), count(paper::amount(query).0), of_paper.join(" | "));
        row(&before, systems.iter().map(|system| results.find(system, query.name()).map(|line| seconds(line.seconds))));
    }
    println!();
}

/// A whole number, short where it is round.
fn count(number: u64) -> String {
    match number {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{} M", n / 1_000_000),
        n if n >= 1000 && n % 1000 == 0 => format!("{} K", n / 1000),
        n => n.to_string(),
    }
}

fn print_capacities(results: &Results, systems: &[&str]) {
    println!("### Tuples a second by query (Figures 8 and 10)\n");
    let paper: Vec<String> = paper::SYSTEMS.iter().map(|name| format!("paper, flash: {name}")).collect();
    head(&format!("query|paper, disk: Chronos|{}", paper.join("|")), systems);
    for query in Query::ALL {
        let flash: Vec<String> = (0..4).map(|system| rate(paper::FLASH.capacity(query, system))).collect();
        let before = format!("{} | {} | {}", query.name(), rate(paper::DISK.capacity(query, 3)), flash.join(" | "));
        row(&before, systems.iter().map(|system| results.capacity(system, query).map(rate)));
    }
    println!();
}

fn print_categories(results: &Results, systems: &[&str]) {
    println!("### Tuples a second by category (Tables 4 and 6, Figures 9 and 11)\n");
    println!(
        "The mean of the queries of a category, as the paper's tables have it; of the paper on disk / on flash.\n"
    );
    let paper: Vec<String> = paper::SYSTEMS.iter().map(|name| format!("paper: {name}")).collect();
    head(&format!("category|{}", paper.join("|")), systems);
    for category in Category::ALL {
        let of_paper: Vec<String> = (0..4)
            .map(|system| {
                let [disk, flash] = Medium::BOTH.map(|medium| rate(medium.of_category(category, system)));
                format!("{disk} / {flash}")
            })
            .collect();
        let before = format!("{} | {}", category.name(), of_paper.join(" | "));
        row(&before, systems.iter().map(|system| of_category(results, system, category).map(rate)));
    }
    println!();
}

/// Tuples a second of a category; none unless all its queries were asked.
pub fn of_category(results: &Results, system: &str, category: Category) -> Option<f64> {
    let all: Option<Vec<f64>> = queries_of(category).map(|query| results.capacity(system, query)).collect();
    all.map(|all| mean(all.into_iter()))
}

/// Tuples a second of range queries, Q2.1 to Q10.
pub fn extraction(results: &Results, system: &str) -> Option<f64> {
    let all: Option<Vec<f64>> = range_queries().map(|query| results.capacity(system, query)).collect();
    all.map(|all| mean(all.into_iter()))
}

/// Q2.1 to Q10.
pub fn range_queries() -> impl Iterator<Item = Query> {
    Query::ALL.into_iter().skip(4).take(11)
}

fn print_loads(results: &Results, systems: &[&str]) {
    println!("### What the paper does not have\n");
    head("", systems);
    let cell = |what: &'static str, show: &dyn Fn(&Line) -> String| {
        systems.iter().map(|system| results.find(system, what).map(show)).collect::<Vec<_>>()
    };
    let by_columns: Vec<Option<String>> = systems
        .iter()
        .map(|name| {
            let takes = System::ALL.iter().any(|system| system.name() == *name && system.takes_columns());
            Some((if takes { "columns" } else { "points" }).into())
        })
        .collect();
    row("Q0 takes", by_columns.into_iter());
    row("inserts, 5 of 100 late, tuples/s", cell(extra::LATE, &|line| rate(line.capacity())).into_iter());
    row("deletions at random, tuples/s", cell(extra::DELETE, &|line| rate(line.capacity())).into_iter());
    let inserted = |system: &str| {
        let lines = [Query::ALL[0], Query::ALL[1]].map(|query| results.find(system, query.name()));
        lines.into_iter().flatten().map(|line| line.answer.tuples).sum::<u64>()
    };
    let a_tuple = systems.iter().map(|system| {
        let line = results.find(system, extra::BYTES)?;
        Some(format!("{:.2}", line.answer.tuples as f64 / inserted(system).max(1) as f64))
    });
    row(&format!("bytes a tuple after Q0.2 (the paper's have {TUPLE_BYTES} and 14)"), a_tuple);
    println!();
}
