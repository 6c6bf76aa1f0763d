//! EXPLAIN LEAKAGE: what clouds learn from what lies there, from this query, and from all queries together.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_disperse::leakage::{What, When, learned};
use counterfoil_disperse::{Coding, Column, Condition, Declaration, Placement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::Statement;

use super::first::FirstRows;
use super::scan::DispersedScan;
use super::sums::DispersedSums;
use super::{is_dispersed, kept};
use crate::error::{Error, Result};
use crate::planner;
use crate::session::{Outcome, Session};
use crate::show;
use crate::statement;
use crate::truncate;
use crate::value::Value;

/// Coalitions of several clouds that are told of at most.
const COALITIONS_MAX: usize = 256;

/// A line: the table, who, when, what.
type Line = [String; 4];

impl Session {
    /// What each coalition of clouds learns, of the tables that a query names.
    pub(crate) fn explain_leakage(&mut self, sql: &str) -> Result<Outcome> {
        let mut statements = statement::parse(sql)?;
        match statements.pop() {
            Some(Statement::Execute { name: Some(name), parameters, .. }) => {
                self.with_prepared(&name, (&parameters, &[]), Self::leakage_of)
            }
            Some(statement) => self.leakage_of(&statement, &[]),
            None => Err(Error::Sql("EXPLAIN LEAKAGE of what?".into())),
        }
    }

    fn leakage_of(&mut self, statement: &Statement, given: &[Value]) -> Result<Outcome> {
        let Doing { plan, changed } = self.doing(statement, given)?;
        let mut scans = Vec::new();
        plan.iter().for_each(|plan| find(plan, &mut scans));
        let mut told = Told::default();
        for asked in scans {
            let scan = asked.scan();
            let kept = scan.kept()?;
            // While a table moves its rows lie in several ways.
            for layout in kept.layouts() {
                let declaration = &layout.declaration;
                let of_query =
                    |placement: &Placement, coalition: &[usize]| of_query(declaration, placement, coalition, asked);
                told.of(&scan.table().name, declaration, &of_query);
            }
        }
        for (table, verb) in changed {
            self.tell_of_change(&table, verb, &mut told)?;
        }
        let Told { lines, left_out, .. } = told;
        if left_out > 0 {
            self.notices.push(format!(
                "{left_out} coalitions more are not shown: each learns what each of its clouds learns, and one of more than may_collude the \
                 values of columns that are FOR (sum)"
            ));
        }
        if lines.is_empty() {
            self.notices.push("the query names no dispersed table: nothing of it leaves this machine".into());
        }
        let column = |at: usize| lines.iter().map(|line| Some(line[at].clone())).collect();
        show::table(vec![("table", column(0)), ("who", column(1)), ("when", column(2)), ("learns", column(3))])
    }

    /// What a statement does.
    fn doing(&mut self, statement: &Statement, given: &[Value]) -> Result<Doing> {
        if let Some(change) = self.plan_of_change(statement, given)? {
            return Ok(Doing { plan: change.plan, changed: vec![(change.table, change.verb)] });
        }
        match statement {
            Statement::Query(_) => {
                Ok(Doing { plan: Some(self.planned(statement.clone(), given)?), changed: Vec::new() })
            }
            Statement::Truncate(truncate) => {
                let (view, names) = (self.view()?, truncate::named(truncate)?);
                let table = |name: &String| planner::rows_of(self.engine(), &view, name);
                let tables = names.iter().map(table).collect::<Result<Vec<_>>>()?;
                let changed = tables.iter().map(|table| (table.name.clone(), "Delete")).collect();
                Ok(Doing { plan: None, changed })
            }
            _ => Err(Error::NotSupported(
                "EXPLAIN LEAKAGE of SELECT, INSERT, UPDATE, DELETE, TRUNCATE or EXECUTE; of a table CREATE TABLE and ALTER TABLE say it \
                 themselves"
                    .into(),
            )),
        }
    }

    /// What each coalition of a table's clouds learns when it is changed.
    fn tell_of_change(&mut self, table: &str, verb: &str, told: &mut Told) -> Result<()> {
        let view = self.view()?;
        let Some(table) = planner::rows_of(self.engine(), &view, table).ok().filter(|table| is_dispersed(table)) else {
            return Ok(());
        };
        let kept = kept(&view, &table)?;
        let declaration = kept.declaration();
        // Whether a key is there already is asked before anything comes.
        let keys: BTreeSet<u16> = match verb {
            "Delete" => BTreeSet::new(),
            _ => table.unique_indexes().flat_map(|index| index.columns.iter().map(|id| id.0 as u16)).collect(),
        };
        let of_change = |placement: &Placement, coalition: &[usize]| {
            let mut learns = BTreeSet::from([of_change(verb).to_owned()]);
            let keys = declaration.columns.iter().filter(|column| keys.contains(&column.id));
            learns.extend(keys.filter_map(|column| of_key(placement, coalition, column, verb)));
            learns
        };
        told.of(&table.name, declaration, &of_change);
        Ok(())
    }
}

/// What a statement asks, and which tables it changes how.
struct Doing {
    plan: Option<Arc<dyn ExecutionPlan>>,
    changed: Vec<(String, &'static str)>,
}

fn of_change(verb: &str) -> &'static str {
    match verb {
        "Insert" => "how many rows come, and their fragments; with ON CONFLICT also which rows go",
        "Delete" => "which rows go, together",
        _ => "which rows go, together, and the fragments of as many that come in their place",
    }
}

/// What is learned when clouds are asked whether a key is there.
fn of_key(placement: &Placement, coalition: &[usize], column: &Column, verb: &str) -> Option<String> {
    let fragment = placement.fragment(column.id, Coding::Tag)?;
    let whose = if verb == "Insert" { "that comes" } else { "that comes in its place" };
    fragment.holders.iter().any(|holder| coalition.contains(holder)).then(|| {
        let asked = "and whether it was asked before, whether the row is taken or refused";
        format!("{}: which rows have the key of a row {whose}, {asked}", column.name)
    })
}

/// What is told, and how many coalitions are not told of.
#[derive(Default)]
struct Told {
    lines: Vec<Line>,
    /// The same, to be looked up: of many columns and coalitions there are many.
    seen: BTreeSet<Line>,
    left_out: u64,
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
            Self::Rows(scan) => {
                let before_orders = scan.first().into_iter().flat_map(FirstRows::conditions);
                scan.conditions().into_iter().chain(before_orders.cloned()).collect()
            }
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
const USE_ASKED: &str = "which columns each question is about, which rows it concerns, for how many values or characters it asks, which \
                         questions ask for the same, of orders in how many blocks of four bits two bounds agree, and which rows are asked for because another cloud does not show them";

impl Told {
    /// Adds what coalitions learn of a table that lies as declared: at rest, from this query as is said, and from all of them.
    fn of(
        &mut self,
        table: &str,
        declaration: &Declaration,
        of_query: &dyn Fn(&Placement, &[usize]) -> BTreeSet<String>,
    ) {
        let Ok(placement) = Placement::plan(declaration) else { return };
        let (coalitions, left_out) = coalitions(declaration);
        self.left_out = self.left_out.max(left_out);
        for coalition in coalitions {
            let names: Vec<&str> = coalition.iter().map(|cloud| declaration.clouds[*cloud].as_str()).collect();
            let mut who = names.join(" and ");
            if coalition.len() > declaration.may_collude {
                who.push_str(" (more than may_collude)");
            }
            let mut line =
                |when: &str, learns: String| self.add([table.to_owned(), who.clone(), when.to_owned(), learns]);
            let all = learned(declaration, &placement, &coalition);
            let name = |column: u16| declaration.column(column).map_or("", |column| column.name.as_str());
            line("at rest", USE_AT_REST.into());
            for of in all.iter().filter(|of| of.when == When::AtRest) {
                line("at rest", format!("{}: {}", name(of.column), of.what));
            }
            for learns in of_query(&placement, &coalition) {
                line("from this query", learns);
            }
            line("from all queries", USE_ASKED.into());
            for of in all.iter().filter(|of| of.when == When::Asked) {
                line("from all queries", format!("{}: {}", name(of.column), accumulated(of.what)));
            }
        }
    }

    fn add(&mut self, line: Line) {
        if self.seen.insert(line.clone()) {
            self.lines.push(line);
        }
    }
}

fn accumulated(what: What) -> String {
    match what {
        What::Order => "the order of all that was asked for, and of the values in between; of each value and what was asked for the first four \
                        bits in which they differ"
            .into(),
        other => other.to_string(),
    }
}

/// Each cloud alone, and coalitions up to one cloud more than may collude, the smallest first; and how many there are besides.
fn coalitions(declaration: &Declaration) -> (Vec<Vec<usize>>, u64) {
    let clouds = declaration.clouds.len();
    let mut all: Vec<Vec<usize>> = (0..clouds).map(|cloud| vec![cloud]).collect();
    let (mut count, mut of_a_size) = (clouds as u64, clouds as u64);
    let (mut smaller, most) = (all.clone(), clouds + COALITIONS_MAX);
    for size in 2..=clouds.min(declaration.may_collude + 1) {
        // As many as there are ways to choose so many.
        of_a_size = of_a_size.saturating_mul((clouds + 1 - size) as u64) / size as u64;
        count = count.saturating_add(of_a_size);
        let larger = smaller.iter().flat_map(|coalition| {
            let last = coalition.last().copied().unwrap_or(0);
            (last + 1..clouds).map(|next| coalition.iter().copied().chain([next]).collect())
        });
        smaller = larger.take(most - all.len()).collect::<Vec<Vec<usize>>>();
        all.extend(smaller.iter().cloned());
    }
    let left_out = count - all.len() as u64;
    (all, left_out)
}

/// The codes that know how values compare.
const ORDERS: &[Coding] = &[Coding::Order, Coding::DangerOrder];

fn of_orders(asked: &str) -> String {
    format!("how each value compares with {asked}, the first four bits in which they differ")
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
                // Where there are no tags orders are asked for one value, and show of it what they show of the end of a range.
                match placement.fragment(*column, Coding::Tag).is_some() || values.len() != 1 {
                    true => (*column, &[Coding::Tag][..], format!("which rows have one of {} values", values.len())),
                    false => (*column, ORDERS, of_orders("one value")),
                }
            }
            Condition::Range { column, .. } => (*column, ORDERS, of_orders("each end of the range")),
            Condition::Prefix { column, .. } => {
                (*column, &[Coding::Prefix][..], "which texts begin as the question says".into())
            }
        };
        narrows |= codes.iter().any(|code| placement.fragment(column, *code).is_some());
        if codes.iter().any(|code| holds(column, *code)) {
            learns.insert(format!("{}: {what}, and whether it was asked before", name(column)));
        }
    }
    if let Asked::Rows(scan) = asked {
        for column in scan.first().into_iter().flat_map(FirstRows::columns) {
            narrows = true;
            if holds(column, Coding::DangerOrder) {
                learns.insert(format!("{}: that its first rows are asked for, and about how many (of a small table all rows are fetched in their place)", name(column)));
            }
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
