from hypothesis import given
from hypothesis import strategies as st

from trapline.db.sql_split import segments, split_statements


def test_a_semicolon_ends_a_statement() -> None:
    assert split_statements("SELECT 1; SELECT 2") == ["SELECT 1", "SELECT 2"]


def test_strings_names_comments_and_bodies_stay_whole() -> None:
    script = """
        SELECT ';', E'\\';', "a;b"; -- not; here
        /* nor; here */
        CREATE FUNCTION f() RETURNS int AS $body$ BEGIN; $$ ; END $body$ LANGUAGE plpgsql;
        SELECT $1, a$b$c;
    """
    assert len(split_statements(script)) == 3
    assert split_statements(script)[2] == "SELECT $1, a$b$c"


def test_a_mere_comment_is_no_statement() -> None:
    assert split_statements("-- nothing\n;; /* still nothing */") == []


@given(st.text(alphabet="a'\"$;-/*\n e\\"))
def test_segments_lose_no_character(sql: str) -> None:
    assert "".join(piece for piece, _ in segments(sql)) == sql
