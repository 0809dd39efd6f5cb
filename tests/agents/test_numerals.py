import time

import pytest

from agents.numerals import in_figures


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("eleven sailors", "11 sailors"),
        ("Eleven sailors", "11 sailors"),
        ("the ninth of March", "the 9 of March"),
        ("March 9th", "March 9"),
        ("twenty-one guns", "21 guns"),
        ("the twenty-first of May, the thirtieth", "the 21 of May, the 30"),
        ("a hundred and five men", "105 men"),
        ("eighteen hundred and twenty", "1820"),
        ("two thousand three hundred", "2300"),
        ("the fiftieth, sixtieth day", "the 50, 60 day"),
        ("a thousand and one nights", "1001 nights"),
        ("one, two, three", "1, 2, 3"),
        ("one two three", "1 2 3"),
        ("1,200 dollars, 3,000,000", "1200 dollars, 3000000"),
        ("1,20 and 1.200 stay, as do 12,34,567", "1,20 and 1.200 stay, as do 12,34,567"),
        ("The first of them came second", "The first of them came second"),
        ("someone, tender, often, weighty", "someone, tender, often, weighty"),
    ],
)
def test_numbers_become_figures_and_nothing_else_does(text, figures):
    assert in_figures(text) == figures


@pytest.mark.parametrize("word", ["one ", "twenty-", "a thousand ", "1,000,", "hundred "])
def test_no_text_takes_long(word):
    started = time.perf_counter()
    in_figures(word * 20_000)
    assert time.perf_counter() - started < 2
