//! Tables over the real log.

#[path = "main/answers.rs"]
mod answers;
#[path = "main/bench.rs"]
mod bench;
#[path = "main/compiled.rs"]
mod compiled;
#[path = "main/damage.rs"]
mod damage;
#[path = "main/define.rs"]
mod define;
#[path = "main/figures.rs"]
mod figures;
#[path = "main/foreign.rs"]
mod foreign;
#[path = "main/images.rs"]
mod images;
#[path = "main/joins.rs"]
mod joins;
#[path = "main/model.rs"]
mod model;
#[path = "main/plans.rs"]
mod plans;
#[path = "main/questions.rs"]
mod questions;
#[path = "main/reorganize.rs"]
mod reorganize;
#[path = "main/rules.rs"]
mod rules;
