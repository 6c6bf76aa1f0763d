-- What tools ask, each in the forms that it uses: Grafana, DBeaver, pgcli, Metabase, pgAdmin, timescaledb's and others.

-- Which tables can be named without their schema, from the search path taken apart.
SELECT CASE WHEN quote_ident(table_schema) IN (
        SELECT CASE WHEN trim(p[k]) = '"$user"' THEN user ELSE trim(p[k]) END
        FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                             array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS k,
             string_to_array(current_setting('search_path'), ',') p)
    THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS named
FROM information_schema.tables ORDER BY 1;

SELECT quote_ident(column_name) AS c, data_type FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('public.a'), 1) = 2
        THEN quote_ident(table_schema) = (parse_ident('public.a'))[1] AND quote_ident(table_name) = (parse_ident('public.a'))[2]
        ELSE quote_ident(table_name) = 'public.a' END;

SELECT current_setting('server_version_num')::int / 100;

SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

SELECT current_schema(), session_user;

-- Everything of a row, and its number before it.
SELECT n.oid, n.*, d.description FROM pg_namespace n
    LEFT JOIN pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname;

SELECT n.nspname = ANY (current_schemas(true)), t.typname FROM pg_type t JOIN pg_namespace n ON t.typnamespace = n.oid
WHERE t.oid = 1034;

SELECT d.oid, d.* FROM pg_database d;

SELECT * FROM pg_settings WHERE name = 'standard_conforming_strings';

SELECT string_agg(word, ',' ORDER BY word) FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{all,zone}'::text[]);

SELECT * FROM pg_enum WHERE 1 <> 1 LIMIT 1;

SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) FROM pg_type t
    LEFT OUTER JOIN pg_type e ON e.oid = t.typelem LEFT OUTER JOIN pg_class c ON c.oid = t.typrelid
WHERE (c.relkind IS NULL OR c.relkind = 'c') AND (e.typcategory IS NULL OR e.typcategory <> 'C');

SELECT c.*, pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid), pg_relation_size(c.oid), pg_total_relation_size(c.oid)
FROM pg_class c WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c');

SELECT i.*, i.indkey AS keys, c.relname, pg_get_expr(i.indpred, i.indrelid), pg_stat_get_numscans(i.indexrelid)
FROM pg_index i INNER JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = {b} ORDER BY c.relname;

SELECT c.oid, c.*, t.relname, CASE WHEN c.contype = 'c' THEN "substring"(pg_get_constraintdef(c.oid), 7) ELSE NULL END
FROM pg_constraint c INNER JOIN pg_class t ON t.oid = c.conrelid LEFT OUTER JOIN pg_class r ON r.oid = c.confrelid
WHERE c.conrelid = {b} ORDER BY c.oid;

-- What completes words as they are typed.
SELECT * FROM unnest(current_schemas(true));

SELECT n.nspname, c.relname, a.attname, a.atttypid::regtype::text, pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) AS default
FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON c.relnamespace = n.oid
    LEFT OUTER JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relkind = ANY ('{r,p,f}') AND NOT a.attisdropped AND a.attnum > 0 ORDER BY 1, 2, a.attnum;

SELECT p.proname, COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[], prorettype::regtype::text, p.prokind = 'a'
FROM pg_proc p LEFT JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e' WHERE p.prorettype::regtype != 'trigger'::regtype;

-- Who may do what.
WITH r AS (
    SELECT t.s, t.o, has_any_column_privilege(current_user, '"' || replace(t.s, '"', '""') || '"."' || t.o || '"', 'update') AS u,
        pg_catalog.has_table_privilege(current_user, t.o, 'select') AS r
    FROM (SELECT schemaname AS s, tablename AS o FROM pg_tables UNION SELECT schemaname, viewname FROM pg_views
          UNION SELECT schemaname, matviewname FROM pg_matviews) t
    WHERE t.s !~ '^pg_' AND has_schema_privilege(current_user, t.s, 'usage'))
SELECT r.* FROM r;

SELECT "c"."relname", "u"."n_live_tup" FROM "pg_catalog"."pg_class" AS "c"
    LEFT JOIN "pg_stat_user_tables" AS "u" ON "c"."relname" = "u"."relname" WHERE c.relkind IN ('r', 'v') ORDER BY 1;

SELECT CASE WHEN (SELECT count(extname) FROM pg_extension WHERE extname = 'x') > 0 THEN 'x'
    WHEN (SELECT count(*) FROM pg_replication_slots) > 0 THEN 'log' END AS type;

-- The columns of a primary key.
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = 'a'::regclass AND i.indisprimary;

-- psql: \d of an index, \dL and \dd, which ask for what describes rows of the catalogue.
SELECT i.indisunique, (NOT i.indimmediate) AND EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = i.indrelid
    AND conindid = i.indexrelid AND contype IN ('p', 'u', 'x') AND condeferrable) AS condeferrable
FROM pg_index i WHERE i.indrelid = {b};

SELECT l.lanname FROM pg_language l LEFT JOIN pg_description d ON d.classoid = l.tableoid AND d.objoid = l.oid;
