"""What the suite may ask of the dialect, and why not what it may not."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# What the suite leaves out unless a dialect says that it can.
OPEN = """
    aggregate_order_by autocommit boolean_col_expressions check_constraint_reflection create_or_replace_view
    create_table_as ctes ctes_on_dml ctes_with_update_delete ctes_with_values date_historic datetime_historic
    datetime_literals datetime_timezone datetime_timezone_historic delete_from
    except_ expression_server_defaults fetch_first fetch_no_order_by
    float_or_double_precision_behaves_generically foreign_key_constraint_name_reflection
    foreign_key_constraint_option_reflection_ondelete foreign_key_constraint_option_reflection_onupdate
    fk_constraint_option_reflection_ondelete_restrict fk_constraint_option_reflection_onupdate_restrict
    implicit_default_schema index_ddl_if_exists
    infinity_floats inline_check_constraint_reflection intersect isolation_level
    mod_operator_as_percent_sign nullsordering order_by_label_with_expression percent_schema_names
    precision_numerics_enotation_small precision_numerics_many_significant_digits
    precision_numerics_retains_significant_digits reflects_pk_names regexp_match regexp_replace savepoints server_defaults
    supports_bitwise_and supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on table_ddl_if_exists
    table_value_constructor timestamp_microseconds tuple_in unicode_ddl update_from uuid_data_type views
    window_functions window_range
""".split()

CLOSED = {
    "temporary_tables": "no temporary tables",
    "temp_table_reflection": "no temporary tables",
    "create_temp_table_as": "no temporary tables",
    "temp_table_names": "no temporary tables",
    "has_temp_table": "no temporary tables",
    "temporary_views": "no temporary views",
    "temp_table_comment_reflection": "no temporary tables",
    "schemas": "one schema",
    "cross_schema_fk_reflection": "one schema",
    "schema_create_delete": "one schema",
    "default_schema_name_switch": "one schema",
    "sequences": "no sequences: identity columns",
    "sequences_optional": "no sequences: identity columns",
    "array_type": "no arrays in tables",
    "json_type": "no JSON",
    "datetime_interval": "no intervals in tables",
    "time_timezone": "no TIME WITH TIME ZONE",
    "computed_columns": "no computed columns",
    "comment_reflection": "no comments",
    "two_phase_transactions": "no two-phase transactions",
    "materialized_views": "no materialized views",
    "indexes_with_expressions": "no indexes over expressions",
    "reflect_tables_no_columns": "no tables without columns",
    "order_by_collation": "texts compare by their bytes",
    "column_collation_reflection": "texts compare by their bytes",
    "deferrable_fks": "no deferrable foreign keys",
    "async_dialect": "the dialect waits",
    "identity_columns": "identity columns have no MINVALUE, MAXVALUE, CYCLE and CACHE",
    "identity_columns_standard": "identity columns have no MINVALUE, MAXVALUE, CYCLE and CACHE",
    "like_escapes": "LIKE with ESCAPE takes a pattern that is written out",
    "fetch_expression": "FETCH FIRST takes a number or a parameter",
    "window_range_numeric": "RANGE takes offsets that are written out",
    "reflect_table_options": "no table options",
    "constraint_comment_reflection": "no comments",
    "comment_reflection_full_unicode": "no comments",
    "computed_columns_stored": "no computed columns",
    "computed_columns_virtual": "no computed columns",
    "computed_columns_default_persisted": "no computed columns",
    "computed_columns_reflect_persisted": "no computed columns",
    "reflect_indexes_with_expressions": "no indexes over expressions",
    "reflect_indexes_with_ascdesc_as_expression": "indexes have columns, and no order",
    "indexes_check_column_order": "indexes have columns, and no order",
    "index_reflects_included_columns": "indexes include no other columns",
    "foreign_keys_reflect_as_index": "the index of a constraint is with the constraint",
    "unique_index_reflect_as_unique_constraints": "an index is an index",
    "unique_constraints_reflect_as_index": "the index of a constraint is with the constraint",
    "fk_constraint_option_reflection_ondelete_noaction": "NO ACTION is what happens unless something else is said",
    "non_updating_cascade": "ON UPDATE CASCADE updates",
    "emulated_lastrowid": "rows have no number",
    "emulated_lastrowid_even_with_sequences": "rows have no number",
    "dbapi_lastrowid": "rows have no number",
    "repeated_column_foreign_keys": "a foreign key names each of its columns once",
    "repeated_remote_col_foreign_keys": "a foreign key names each of its columns once",
    "skip_autocommit_rollback": "rollback is asked for under AUTOCOMMIT, too, and does nothing",
    "supports_bitwise_not": "no operator ~",
    "window_range_non_numeric": "RANGE takes offsets that are written out",
    "nvarchar_types": "no NVARCHAR: all texts are Unicode",
    "legacy_unconditional_json_extract": "no JSON",
    "json_deserializer_binary": "no JSON",
    "materialized_views_reflect_pk": "no materialized views",
    "fetch_percent": "FETCH FIRST takes no PERCENT",
    "fetch_ties": "FETCH FIRST takes no WITH TIES",
    "fetch_offset_with_options": "FETCH FIRST takes no options",
}


class Requirements(SuiteRequirements):
    """The suite's, with ours."""


def _closed(why: str) -> property:
    return property(lambda self: exclusions.skip_if(lambda config: True, why))


for _name in OPEN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
for _name, _why in CLOSED.items():
    setattr(Requirements, _name, _closed(_why))
