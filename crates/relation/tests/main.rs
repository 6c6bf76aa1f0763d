//! Tables over the real log.

#[path = "main/answers.rs"]
mod answers;
#[path = "main/attacked.rs"]
mod attacked;
#[path = "main/bench.rs"]
mod bench;
#[path = "main/bulk.rs"]
mod bulk;
#[path = "main/compiled.rs"]
mod compiled;
#[path = "main/counts.rs"]
mod counts;
#[path = "main/damage.rs"]
mod damage;
#[path = "main/define.rs"]
mod define;
#[path = "main/edges.rs"]
mod edges;
#[path = "main/extents.rs"]
mod extents;
#[path = "main/figures.rs"]
mod figures;
#[path = "main/foreign.rs"]
mod foreign;
#[path = "main/forgotten.rs"]
mod forgotten;
#[path = "main/grain.rs"]
mod grain;
#[path = "main/images.rs"]
mod images;
#[path = "main/joins.rs"]
mod joins;
#[path = "main/maps.rs"]
mod maps;
#[path = "main/model.rs"]
mod model;
#[path = "main/outermost.rs"]
mod outermost;
#[path = "main/pages.rs"]
mod pages;
#[path = "main/plans.rs"]
mod plans;
#[path = "main/questions.rs"]
mod questions;
#[path = "main/reorganize.rs"]
mod reorganize;
#[path = "main/rules.rs"]
mod rules;
