//! What all nodes of a plan that have others below them say alike.

/// The part of `ExecutionPlan` that puts a node over others: by its method `over`, which takes them as they are given.
macro_rules! over_children {
    () => {
        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn ExecutionPlan>>,
            _options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> std::result::Result<std::sync::Arc<dyn ExecutionPlan>, DataFusionError> {
            self.over(children)
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn ExecutionPlan>>,
        ) -> std::result::Result<std::sync::Arc<dyn ExecutionPlan>, DataFusionError> {
            self.over(children)
        }
    };
}

/// The part of it for nodes that work nothing out.
macro_rules! no_expressions {
    () => {
        fn apply_expressions(
            &self,
            _visit: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> std::result::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
                DataFusionError,
            >,
        ) -> std::result::Result<datafusion::common::tree_node::TreeNodeRecursion, DataFusionError> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(crate) use {no_expressions, over_children};
