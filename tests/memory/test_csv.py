import pytest
from parsed import parse, texts, written


@pytest.mark.parametrize(("encoding", "sign"), [("utf-8", ","), ("cp1251", ";"), ("utf-16", "\t")])
def test_tables_in_any_encoding_and_with_any_delimiter(tmp_path, encoding, sign):
    rows = [["имя", "цена"], ["чайник", "12"], ["кастрюля", "30"]]
    text = "\n".join(sign.join(row) for row in rows)
    parts = parse("csv", written(tmp_path, "a.csv", text.encode(encoding)))
    assert texts(parts, "table") == ["имя | цена\nимя: чайник | цена: 12\nимя: кастрюля | цена: 30"]


def test_rows_without_names_of_columns_stay_rows(tmp_path):
    parts = parse("csv", written(tmp_path, "a.csv", '1,"two, or\nthree"\n\n4,\n'))
    assert texts(parts) == ["1 | two, or three\n4"]


def test_one_row_is_not_lost(tmp_path):
    assert texts(parse("csv", written(tmp_path, "a.csv", "only,names"))) == ["only | names"]
