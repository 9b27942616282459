"""What SQL lets in, programs can read and processes can run: numbers, moments, timeouts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from shared.postgres.driver.connect import Connection, connect
from shared.postgres.inspection.inspector import PostgresInspector

DAY_MS = 86_400_000
NINES = "9" * 400

WAYS = (
    "select weirkeeper.enqueue('corpus.reindex', {})",
    "select weirkeeper.enqueue('corpus.reindex', {}, priority => 1, tags => '{{a}}')",
    "select (weirkeeper.enqueue_many('corpus.reindex', array[{}]))[1]",
    "insert into weirkeeper.job (kind, args) values ('corpus.reindex', {}) returning id",
)
EVENT = "select weirkeeper.record_event('corpus.note.changed', data => {})"


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test") as opened:
        yield opened


@pytest.mark.parametrize("way", [*WAYS, EVENT])
@pytest.mark.parametrize(
    "number", ["1e400 + 0.5", f"{NINES}.5", f"-{NINES}.5", "1e-400", "-1e-400", "1e309 + 0.0"]
)
def test_a_decimal_that_no_double_holds_is_refused(conn, way, number):
    args = f"jsonb_build_object('deep', jsonb_build_array(({number})::numeric))"
    with pytest.raises(psycopg.Error) as error:
        conn.execute(way.format(args))
    assert error.value.sqlstate == "WK002"
    assert "pass it as a string" in str(error.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "number",
    ["1e400", NINES, "1.7976931348623157e308 + 0.0", "5e-324", "0.0", "-0.5", "1e-126",
     f"{'9' * 125}.5"],
)  # fmt: skip
def test_what_python_reads_as_it_is_gets_in(conn, way, number):
    [(job,)] = conn.execute(way.format(f"jsonb_build_object('n', ({number})::numeric)")).fetchall()
    [(exact, text)] = conn.execute(f"select ({number})::numeric, args::text from weirkeeper.job where id = %s",
                                   (job,)).fetchall()  # fmt: skip
    read = json.loads(text)["n"]
    assert read == (int(exact) if "." not in text else float(exact))
    assert PostgresInspector(conn).get(str(job)).args == {"n": read}


@pytest.mark.parametrize(
    "way",
    [
        "select weirkeeper.enqueue('corpus.reindex', timeout_ms => {})",
        "select weirkeeper.enqueue('corpus.reindex', timeout_ms => {}, tags => '{{a}}')",
        "select weirkeeper.enqueue_many('corpus.reindex', '{{}}', timeout_ms => {})",
        "insert into weirkeeper.job (kind, timeout_ms) values ('corpus.reindex', {})",
    ],
)
def test_a_timeout_is_at_most_a_day(conn, way):
    conn.execute(way.format(DAY_MS))
    for wrong in (DAY_MS + 1, 2**31 - 1):
        with pytest.raises(psycopg.Error) as error:
            conn.execute(way.format(wrong))
        assert error.value.sqlstate == "WK004"
        assert "at most a day (86400000); got" in str(error.value)
        assert f"and {wrong}; leave them out" in str(error.value)


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "4713-01-01 BC"])
def test_a_job_is_made_at_a_moment_that_can_be_read(conn, moment):
    insert = "insert into weirkeeper.job (kind, created_at) values ('corpus.reindex', %s)"
    with pytest.raises(psycopg.Error) as error:
        conn.execute(insert, (moment,))
    assert error.value.sqlstate == "WK004"
    assert f"created_at: expected a moment in the years 1 to 9999; got {moment[:4]}" in str(
        error.value
    )
    conn.execute(insert, ("2026-01-01 00:00+00",))
