//! Views: their queries are kept as text, every `*` written out, and nothing changes under them unnoticed.
//!
//! PostgreSQL keeps the plan of a view, in which tables and columns are numbers. Ours is planned from its text each
//! time, so the text must go on meaning what it meant when the view was made: an added column does not show in it, and
//! what drops or renames something that it reads is refused, or drops the view with CASCADE.

use std::collections::HashSet;
use std::sync::Arc;

use counterfoil_relation::{self as relation, StoredView};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::sql::sqlparser::ast::{
    CreateView, Expr, Query, Select, SelectItem, SetExpr, WildcardAdditionalOptions, With,
};

use crate::change::select;
use crate::columns;
use crate::define::reserved;
use crate::error::{Error, Result, name_taken};
use crate::naming;
use crate::planner;
use crate::session::{Outcome, Session, with_stack};
use crate::statement::{self, fold, ident, table_name};
use crate::transaction::Change;

/// A view and what its columns are.
pub(crate) struct Shape {
    view: StoredView,
    columns: Vec<(String, DataType)>,
}

impl Session {
    pub(crate) fn create_view(&mut self, create: &CreateView) -> Result<Outcome> {
        if create.materialized || create.temporary {
            return Err(Error::NotSupported("materialized and temporary views".into()));
        }
        let name = table_name(&create.name)?;
        reserved(&name)?;
        self.change(|session, change| {
            let relations = session.engine().relations.clone();
            let present = relations.named(&*change.lease, &name).map_err(Error::Relation)?;
            match present {
                Some(_) if create.if_not_exists => return Ok(Outcome::Done("CREATE VIEW")),
                Some(relation::Named::View(_)) if create.or_replace => {}
                Some(_) => return Err(name_taken(&name)),
                None => {}
            }
            let columns = create.columns.iter().map(|column| fold(&column.name)).collect();
            let query = session.written_out(change, &create.query)?;
            let view = StoredView { name, sql: query.to_string(), columns };
            session.check_view(change, &view, query)?;
            let over = session.views_over(change, &view.name)?;
            relations.create_view(&mut *change.lease, &view, create.or_replace).map_err(Error::Relation)?;
            session.keep_views(change, &over, &format!("the columns of view {}", view.name), Cascade::Never)?;
            Ok(Outcome::Done("CREATE VIEW"))
        })
    }

    /// Plans the query of a new view, and looks at the names of its columns.
    fn check_view(&mut self, change: &mut Change, view: &StoredView, mut query: Query) -> Result<()> {
        naming::name_query(&mut query, naming::Names::Written);
        let schema = self.planner.plan_query(query, &change.lease.pending(), Vec::new())?;
        let given = view.columns.len();
        if given > 0 && given != schema.schema().fields().len() {
            return Err(Error::Sql(format!("{given} names for the columns of the view's query")));
        }
        if given == 0 {
            let shown = naming::shown(&Arc::new(schema.schema().as_arrow().clone()));
            columns::distinct(shown.fields().iter().map(|field| field.name().as_str()))?;
        }
        Ok(())
    }

    /// A query with the columns in the place of every `*` that shows them.
    fn written_out(&mut self, change: &mut Change, query: &Query) -> Result<Query> {
        let mut query = query.clone();
        let with = query.with.clone();
        self.write_out(change, with.as_ref(), &mut query.body)?;
        Ok(query)
    }

    /// Stars further in show nothing that is not named here.
    fn write_out(&mut self, change: &mut Change, with: Option<&With>, body: &mut SetExpr) -> Result<()> {
        let select = match body {
            SetExpr::Select(select) => select,
            SetExpr::SetOperation { left, right, .. } => {
                self.write_out(change, with, left)?;
                return self.write_out(change, with, right);
            }
            _ => return Ok(()),
        };
        let mut items = Vec::new();
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(ref options) | SelectItem::QualifiedWildcard(_, ref options)
                    if *options == WildcardAdditionalOptions::default() =>
                {
                    items.extend(self.columns_of_star(change, with.cloned(), select, item)?);
                }
                other => items.push(other),
            }
        }
        select.projection = items;
        Ok(())
    }

    /// The columns that an item stands for.
    fn columns_of_star(
        &mut self,
        change: &mut Change,
        with: Option<With>,
        from: &Select,
        item: SelectItem,
    ) -> Result<Vec<SelectItem>> {
        let probe = select(with, vec![item], from.from.clone(), None);
        let plan = self.planner.plan_query(probe, &change.lease.pending(), Vec::new())?;
        let item = |(table, field): (Option<&datafusion::common::TableReference>, &Arc<_>)| {
            let field: &datafusion::arrow::datatypes::Field = field;
            let column = ident(field.name());
            SelectItem::UnnamedExpr(match table {
                Some(table) => Expr::CompoundIdentifier(vec![ident(table.table()), column]),
                None => Expr::Identifier(column),
            })
        };
        Ok(plan.schema().iter().map(item).collect())
    }

    /// Views that name a table or view that goes: they go too with CASCADE, else they forbid it.
    pub(crate) fn drop_dependents(&mut self, change: &mut Change, name: &str, cascade: bool) -> Result<()> {
        let relations = self.engine().relations.clone();
        for view in relations.views(&*change.lease).map_err(Error::Relation)? {
            if view.name == name || !self.names_of(&view)?.contains(name) {
                continue;
            }
            if !cascade {
                return Err(depends(&view.name, name));
            }
            self.drop_with_dependents(change, &view.name)?;
        }
        Ok(())
    }

    fn drop_with_dependents(&mut self, change: &mut Change, view: &str) -> Result<()> {
        let relations = self.engine().relations.clone();
        if relations.named(&*change.lease, view).map_err(Error::Relation)?.is_some() {
            self.drop_dependents(change, view, true)?;
            relations.drop_view(&mut *change.lease, view).map_err(Error::Relation)?;
        }
        Ok(())
    }

    fn names_of(&self, view: &StoredView) -> Result<HashSet<String>> {
        with_stack(&view.sql, || match statement::parse(&view.sql)?.first() {
            Some(query) => planner::names(&self.planner, query),
            None => Ok(HashSet::new()),
        })
    }

    /// The views that read a table or view, themselves or through others, as they are before it changes.
    pub(crate) fn views_over(&mut self, change: &mut Change, name: &str) -> Result<Vec<Shape>> {
        let views = self.engine().relations.views(&*change.lease).map_err(Error::Relation)?;
        let mut over = HashSet::from([name.to_owned()]);
        let mut found = Vec::new();
        // Views of views: again until nothing is added.
        loop {
            let before = over.len();
            for view in &views {
                if !over.contains(&view.name) && !self.names_of(view)?.is_disjoint(&over) {
                    over.insert(view.name.clone());
                    // One that is broken already cannot break.
                    found.extend(self.shape(change, view).ok());
                }
            }
            if over.len() == before {
                return Ok(found);
            }
        }
    }

    fn shape(&mut self, change: &mut Change, view: &StoredView) -> Result<Shape> {
        let schema: Schema = self.planner.view_schema(view, &change.lease.pending())?;
        let columns = schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
        Ok(Shape { view: view.clone(), columns: columns.collect() })
    }

    /// Holds views against what they were: those that read `what`, which has changed, go with CASCADE or forbid it.
    pub(crate) fn keep_views(
        &mut self,
        change: &mut Change,
        over: &[Shape],
        what: &str,
        cascade: Cascade,
    ) -> Result<()> {
        for before in over {
            let after = self.shape(change, &before.view);
            if after.is_ok_and(|after| after.columns == before.columns) {
                continue;
            }
            match cascade {
                Cascade::Asked => self.drop_with_dependents(change, &before.view.name)?,
                Cascade::Possible => return Err(depends(&before.view.name, what)),
                Cascade::Never => {
                    let view = &before.view.name;
                    return Err(Error::Constraint(format!("view {view} depends on {what}: drop it first")));
                }
            }
        }
        Ok(())
    }
}

/// Whether views go with what they read.
#[derive(Clone, Copy)]
pub(crate) enum Cascade {
    /// CASCADE was written.
    Asked,
    /// CASCADE might have been written.
    Possible,
    /// The statement has no CASCADE.
    Never,
}

fn depends(view: &str, what: &str) -> Error {
    Error::Constraint(format!("view {view} depends on {what}: drop it first, or add CASCADE"))
}
