//! Binds what becomes of the rows of a question: groups, which of them, no row twice, in order.

use counterfoil_relation::{self as relation, Function, Output, Plan, Test, Type};
use datafusion::arrow::datatypes::Field;

use super::binding::Binding;
use super::question::{By, ColumnName, Made, Order, Refined};
use crate::filter;
use crate::value::Value;

/// Takes what is said of the rows into a plan that shows these fields; none where only the query library knows what is meant.
pub(super) fn refine(binding: &Binding, refined: &Refined, plan: &mut Plan, fields: &[Field]) -> Option<()> {
    for name in &refined.groups {
        let Output::Column(place) = binding.output(&Made::Column(name.clone()))? else { return None };
        plan.groups.push(place);
    }
    let mut refining = Refining { binding, plan, fields };
    for (made, comparison, value) in &refined.having {
        let test = refining.having(made, *comparison, value)?;
        refining.plan.having.push(test);
    }
    refining.plan.is_distinct = refined.is_distinct;
    for order in &refined.order {
        let order = refining.order(order)?;
        refining.plan.order.push(order);
    }
    plan.offset = refined.offset;
    makes_sense(plan).then_some(())
}

/// A plan that is being refined.
struct Refining<'b> {
    binding: &'b Binding,
    plan: &'b mut Plan,
    fields: &'b [Field],
}

impl Refining<'_> {
    fn having(&mut self, made: &Made, comparison: filter::Comparison, value: &Value) -> Option<Test> {
        if let Made::Column(name) = made
            && self
                .shown_as(name)
                .next()
                .is_some_and(|place| self.binding.output(made) != Some(self.plan.outputs[place]))
        {
            return None;
        }
        let output = self.binding.output(made)?;
        let kind = self.plan.kind_of(output).ok()?;
        let column = self.place(output);
        match value {
            Value::Null => Some(Test::Never),
            value => Some(Test::Compare { column, comparison, constant: filter::given(&kind, value)? }),
        }
    }

    fn order(&mut self, order: &Order) -> Option<relation::Order> {
        let output = match &order.by {
            By::Place(place) => *place,
            By::Made(made) => {
                let meant = self.binding.output(made);
                let shown = match made {
                    Made::Column(name) => self.shown_as(name).next(),
                    _ => None,
                };
                match (shown, meant) {
                    // The answer has a column of this name, and so may a table have another.
                    (Some(place), Some(meant)) if self.plan.outputs[place] != meant => return None,
                    (Some(place), _) => place,
                    (None, meant) => self.place(meant?),
                }
            }
        };
        Some(relation::Order { output, is_descending: order.is_descending, nulls_first: order.nulls_first })
    }

    /// The columns of the answer that are called so.
    fn shown_as(&self, name: &ColumnName) -> impl Iterator<Item = usize> {
        let is_so = |place: &usize| name.table.is_none() && *self.fields[*place].name() == name.column;
        (0..self.fields.len()).filter(is_so).collect::<Vec<_>>().into_iter()
    }

    /// The place of an output; a new one behind those that are shown, if it is none of them.
    fn place(&mut self, output: Output) -> usize {
        let known = self.plan.outputs.iter().position(|known| *known == output);
        known.unwrap_or_else(|| {
            self.plan.outputs.push(output);
            self.plan.outputs.len() - 1
        })
    }
}

/// Whether it asks for what there is, and no more than the library grants.
fn makes_sense(plan: &Plan) -> bool {
    let is_column = |output: &Output| matches!(output, Output::Column(_));
    let is_grouped = !plan.groups.is_empty() || !plan.outputs.iter().all(is_column);
    let stays = |output: &Output| match output {
        Output::Column(place) => !is_grouped || plan.groups.contains(place),
        Output::CountRows | Output::Aggregate(Function::Count, _) => true,
        Output::Aggregate(..) => plan.kind_of(*output).is_ok_and(|kind| is_made_alike(&kind)),
    };
    // Without a column that is shown there is nothing to tell rows apart by.
    let is_hidden = plan.is_distinct && plan.shown < plan.outputs.len();
    plan.outputs.iter().all(stays) && !is_hidden && (plan.having.is_empty() || is_grouped)
}

/// Whether an aggregate of such a type is the library's in everything.
fn is_made_alike(kind: &Type) -> bool {
    !matches!(kind, Type::Boolean | Type::Uuid | Type::Bytea | Type::Char(_) | Type::VarChar(_))
}
