"""The whole schema as text, the same on Postgres 15 and 18, read from pg_catalog.

Not pg_dump: its output changes with its version. What is left out differs between servers and
means nothing (owners, object ids, the NOT NULL constraints that 18 keeps as rows of their own).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

GOLDEN = Path(__file__).with_name("schema.golden.sql")
HEAD = """\
-- The schema after all migrations, as pg_catalog tells it; kept by tests/sql/test_schema.py.
-- Written by `python -m tests.sql`. Bodies of functions stand here as the sha256 of their text.
"""

SCHEMAS = """
    select nspname, obj_description(oid, 'pg_namespace') from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public') order by nspname"""
RELATIONS = """
    select c.oid, c.relname, c.relkind::text, coalesce(array_to_string(c.reloptions, ', '), ''),
           obj_description(c.oid, 'pg_class')
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %s and c.relkind in ('r', 'p', 'v', 'm')
    order by c.relname"""
COLUMNS = """
    select a.attname, format_type(a.atttypid, a.atttypmod),
           case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation
                else '' end,
           case when a.attnotnull then ' not null' else '' end,
           a.attidentity::text, a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid),
           col_description(a.attrelid, a.attnum)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
    order by a.attnum"""
CONSTRAINTS = """
    select conname, pg_get_constraintdef(oid) from pg_constraint
    where conrelid = %s and contype in ('c', 'f', 'p', 'u', 'x') order by contype, conname"""
INDEXES = """
    select pg_get_indexdef(i.indexrelid) from pg_index i
    where i.indrelid = %s
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid
                      and k.contype in ('p', 'u', 'x'))
    order by i.indexrelid::regclass::text"""
TRIGGERS = """
    select pg_get_triggerdef(oid) from pg_trigger
    where tgrelid = %s and not tgisinternal order by tgname"""
SEQUENCES = """
    select c.relname, format_type(s.seqtypid, null), s.seqstart, s.seqincrement, s.seqcache,
           s.seqcycle
    from pg_sequence s join pg_class c on c.oid = s.seqrelid
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %s order by c.relname"""
FUNCTIONS = """
    select p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
           l.lanname, p.provolatile::text, p.proisstrict, p.prosecdef,
           coalesce(array_to_string(p.proconfig, ', '), ''),
           coalesce(pg_get_function_sqlbody(p.oid), p.prosrc), obj_description(p.oid, 'pg_proc')
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    join pg_language l on l.oid = p.prolang
    where n.nspname = %s order by p.proname, pg_get_function_identity_arguments(p.oid)"""
TYPES = """
    select t.typname, t.typtype::text, format_type(t.typbasetype, t.typtypmod),
           (select string_agg(pg_get_constraintdef(k.oid), ' ' order by k.conname)
            from pg_constraint k where k.contypid = t.oid and k.contype = 'c'),
           (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)
            from pg_enum e where e.enumtypid = t.oid),
           obj_description(t.oid, 'pg_type')
    from pg_type t join pg_namespace n on n.oid = t.typnamespace
    where n.nspname = %s and t.typtype in ('d', 'e') order by t.typname"""
KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view"}
VOLATILITY = {"i": "immutable", "s": "stable", "v": "volatile"}


def schema_text(conn: psycopg.Connection[Any]) -> str:
    """Everything that the migrations made."""
    conn.execute("select set_config('search_path', 'pg_catalog', false)")
    parts = [HEAD]
    for schema, comment in conn.execute(SCHEMAS).fetchall():
        parts += [f"schema {schema}{_comment(comment)}", *_schema(conn, schema)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _schema(conn: psycopg.Connection[Any], schema: str) -> Iterator[str]:
    for name, kind, base, check, labels, comment in conn.execute(TYPES, [schema]).fetchall():
        what = f"{base} {check or ''}".rstrip() if kind == "d" else f"enum ({labels})"
        yield f"type {schema}.{name} {what}{_comment(comment)}"
    for oid, name, kind, options, comment in conn.execute(RELATIONS, [schema]).fetchall():
        head = f"{KINDS[kind]} {schema}.{name}{f' with ({options})' if options else ''}"
        yield "\n".join([f"{head}{_comment(comment)}", *_relation(conn, oid)])
    rows = conn.execute(SEQUENCES, [schema]).fetchall()
    for name, kind, start, increment, cache, cycle in rows:
        yield f"sequence {schema}.{name} {kind} {start=} {increment=} {cache=} {cycle=}"
    for row in conn.execute(FUNCTIONS, [schema]).fetchall():
        yield _function(schema, row)


def _relation(conn: psycopg.Connection[Any], oid: int) -> Iterator[str]:
    for name, kind, collate, null, identity, generated, default, comment in conn.execute(
        COLUMNS, [oid]
    ).fetchall():
        value = f" default {default}" if default and not generated else ""
        value += f" generated ({default})" if generated else ""
        value += {"a": " identity always", "d": " identity by default", "": ""}[identity]
        yield f"  {name} {kind}{collate}{null}{value}{_comment(comment)}"
    for name, definition in conn.execute(CONSTRAINTS, [oid]).fetchall():
        yield f"  constraint {name} {definition}"
    for (definition,) in conn.execute(INDEXES, [oid]).fetchall():
        yield f"  {definition}"
    for (definition,) in conn.execute(TRIGGERS, [oid]).fetchall():
        yield f"  {definition}"


def _function(schema: str, row: tuple[Any, ...]) -> str:
    name, arguments, result, language, volatility, strict, definer, config, body, comment = row
    how = [
        language,
        VOLATILITY[volatility],
        "strict" if strict else "",
        "security definer" if definer else "",
        f"set {config}" if config else "",
    ]
    return "\n".join(
        [
            f"function {schema}.{name}({arguments}) returns {result}",
            f"  {' '.join(filter(None, how))}",
            f"  sha256 {hashlib.sha256(body.encode()).hexdigest()}{_comment(comment)}",
        ]
    )


def _comment(text: str | None) -> str:
    return f"  -- {' '.join(text.split())}" if text else ""
