//! EXPLAIN LEAKAGE: what clouds learn from what lies there, from this query, and from all queries together.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::leakage::{What, When, learned};
use counterfoil_disperse::{Coding, Condition, Declaration, Placement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::Statement;

use super::scan::DispersedScan;
use super::sums::DispersedSums;
use super::{is_dispersed, kept};
use crate::error::{Error, Result};
use crate::naming;
use crate::planner;
use crate::session::{Outcome, Session};
use crate::show;
use crate::statement;

/// Coalitions that are told of at most.
const COALITIONS_MAX: usize = 64;

/// A line: the table, who, when, what.
type Line = [String; 4];

impl Session {
    /// What each coalition of clouds learns, of the tables that a query names.
    pub(crate) fn explain_leakage(&mut self, sql: &str) -> Result<Outcome> {
        let mut statements = statement::parse(sql)?;
        let Some(mut statement) = statements.pop() else { return Err(Error::Sql("EXPLAIN LEAKAGE of what?".into())) };
        let change = self.plan_of_change(&statement, &[])?;
        let changed = change.as_ref().map(|change| (change.table.clone(), change.verb));
        let plan = match change {
            Some(change) => change.plan,
            None if !matches!(statement, Statement::Query(_)) => {
                let text = "EXPLAIN LEAKAGE of SELECT, INSERT, UPDATE or DELETE; of a table CREATE TABLE and ALTER TABLE say it themselves";
                return Err(Error::NotSupported(text.into()));
            }
            None => {
                naming::name_columns(&mut statement, self.names);
                let snapshot = self.view()?;
                let plan = self.planner.plan(statement, &snapshot, Vec::new())?;
                Some(self.planner.physical(&plan)?)
            }
        };
        let mut scans = Vec::new();
        plan.iter().for_each(|plan| find(plan, &mut scans));
        let mut lines: Vec<Line> = Vec::new();
        for asked in scans {
            let scan = asked.scan();
            let kept = scan.kept()?;
            // While a table moves its rows lie in several ways.
            for layout in kept.layouts() {
                let told = lines_of(&scan.table().name, &layout.declaration, asked);
                lines.extend(told.into_iter().filter(|line| !lines.contains(line)).collect::<Vec<_>>());
            }
        }
        if let Some((table, verb)) = changed {
            lines.extend(self.lines_of_change(&table, verb)?);
        }
        if lines.is_empty() {
            self.notices.push("the query names no dispersed table: nothing of it leaves this machine".into());
        }
        let column = |at: usize| lines.iter().map(|line| Some(line[at].clone())).collect();
        show::table(vec![("table", column(0)), ("who", column(1)), ("when", column(2)), ("learns", column(3))])
    }

    /// What each cloud of a table is told when it is changed.
    fn lines_of_change(&mut self, table: &str, verb: &str) -> Result<Vec<Line>> {
        let view = self.view()?;
        let Some(table) = planner::rows_of(self.engine(), &view, table).ok().filter(|table| is_dispersed(table)) else {
            return Ok(Vec::new());
        };
        let told = match verb {
            "Insert" => "how many rows come, and their fragments",
            "Delete" => "which rows go, together",
            _ => "which rows go, together, and the fragments of as many that come in their place",
        };
        let declaration = kept(&view, &table)?.declaration().clone();
        let line = |cloud: &String| [table.name.clone(), cloud.clone(), "from this query".into(), told.into()];
        Ok(declaration.clouds.iter().map(line).collect())
    }
}

/// What clouds are asked by a node of a plan.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Rows(&'a DispersedScan),
    Sums(&'a DispersedSums),
}

impl<'a> Asked<'a> {
    fn scan(self) -> &'a DispersedScan {
        match self {
            Self::Rows(scan) => scan,
            Self::Sums(sums) => sums.scan(),
        }
    }

    fn conditions(self) -> Vec<Condition> {
        match self {
            Self::Rows(scan) => scan.conditions(),
            Self::Sums(sums) => sums.conditions().to_vec(),
        }
    }
}

fn find<'a>(plan: &'a Arc<dyn ExecutionPlan>, asked: &mut Vec<Asked<'a>>) {
    asked.extend(plan.downcast_ref::<DispersedScan>().map(Asked::Rows));
    asked.extend(plan.downcast_ref::<DispersedSums>().map(Asked::Sums));
    plan.children().into_iter().for_each(|child| find(child, asked));
}

/// What everybody learns who has fragments, whatever the values are (the head of `leakage.rs` of the crate below).
const USE_AT_REST: &str = "how many rows and columns there are, as what each column is coded, which rows come, move and go together, and when; \
                           of the catalogue how many entries come and go with each change, and the classes of their lengths";
const USE_ASKED: &str = "which columns each question is about, which rows it concerns, for how many values or characters it asks, and which \
                         questions ask for the same";

fn lines_of(table: &str, declaration: &Declaration, asked: Asked<'_>) -> Vec<Line> {
    let Ok(placement) = Placement::plan(declaration) else { return Vec::new() };
    let mut lines = Vec::new();
    for coalition in coalitions(declaration) {
        let names: Vec<&str> = coalition.iter().map(|cloud| declaration.clouds[*cloud].as_str()).collect();
        let mut who = names.join(" and ");
        if coalition.len() > declaration.may_collude {
            who.push_str(" (more than may_collude)");
        }
        let mut line =
            |when: &str, learns: String| lines.push([table.to_owned(), who.clone(), when.to_owned(), learns]);
        let all = learned(declaration, &placement, &coalition);
        let name = |column: u16| declaration.column(column).map_or("", |column| column.name.as_str());
        line("at rest", USE_AT_REST.into());
        for of in all.iter().filter(|of| of.when == When::AtRest) {
            line("at rest", format!("{}: {}", name(of.column), of.what));
        }
        for learns in of_query(declaration, &placement, &coalition, asked) {
            line("from this query", learns);
        }
        line("from all queries", USE_ASKED.into());
        for of in all.iter().filter(|of| of.when == When::Asked) {
            line("from all queries", format!("{}: {}", name(of.column), accumulated(of.what)));
        }
    }
    lines
}

fn accumulated(what: What) -> String {
    match what {
        What::Order => "the order of all that was asked for, and of the values in between".into(),
        other => other.to_string(),
    }
}

/// Each cloud alone, and all coalitions up to one cloud more than may collude.
fn coalitions(declaration: &Declaration) -> Vec<Vec<usize>> {
    let clouds = declaration.clouds.len().min(u32::BITS as usize - 1);
    let masks = (1..1_u32 << clouds).filter(|mask| mask.count_ones() as usize <= declaration.may_collude + 1);
    let mut coalitions: Vec<Vec<usize>> =
        masks.take(COALITIONS_MAX).map(|mask| (0..clouds).filter(|cloud| mask >> cloud & 1 == 1).collect()).collect();
    coalitions.sort_by_key(Vec::len);
    coalitions
}

/// What a coalition learns from the questions of one scan.
fn of_query(
    declaration: &Declaration,
    placement: &Placement,
    coalition: &[usize],
    asked: Asked<'_>,
) -> BTreeSet<String> {
    let holds = |column: u16, coding: Coding| {
        let fragment = placement.fragment(column, coding);
        fragment.is_some_and(|fragment| fragment.holders.iter().any(|holder| coalition.contains(holder)))
    };
    let has_cells = |column: u16| placement.cell_holders(column).iter().any(|holder| coalition.contains(holder));
    let name = |column: u16| declaration.column(column).map_or("", |column| column.name.as_str());
    let mut learns = BTreeSet::new();
    let mut narrows = matches!(asked, Asked::Rows(scan) if scan.has_limit());
    for condition in asked.conditions() {
        let (column, codes, what) = match &condition {
            Condition::Equal { column, values } => {
                // Of orders one value is asked for.
                let codes = &[Coding::Tag, Coding::Order, Coding::DangerOrder][..if values.len() == 1 { 3 } else { 1 }];
                (*column, codes, format!("which rows have one of {} values", values.len()))
            }
            Condition::Range { column, .. } => {
                let codes = &[Coding::Order, Coding::DangerOrder][..];
                (*column, codes, "how each value compares with the ends of the range".into())
            }
            Condition::Prefix { column, .. } => {
                (*column, &[Coding::Prefix][..], "which texts begin as the question says".into())
            }
        };
        narrows |= codes.iter().any(|code| placement.fragment(column, *code).is_some());
        if codes.iter().any(|code| holds(column, *code)) {
            learns.insert(format!("{}: {what}, and whether it was asked before", name(column)));
        }
    }
    let rows = |narrowed: &str, all: &str| if narrows { narrowed.to_owned() } else { all.to_owned() };
    match asked {
        Asked::Rows(scan) if scan.ids().iter().any(|column| has_cells(*column)) => {
            let which = rows("which rows are fetched", "that all rows are fetched");
            learns.insert(format!("{which}, and of how many columns"));
        }
        Asked::Sums(sums) if sums.ids().iter().any(|column| holds(*column, Coding::Share(0))) => {
            learns.insert(rows("which rows are added up", "that all rows are added up"));
        }
        _ => {}
    }
    learns
}
