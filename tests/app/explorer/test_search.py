"""Search: queries of all forms select the same rows as pandas, and other text is an error."""

import numpy as np
import pytest

from mercer import KernelPCA, explore

pandas = pytest.importorskip("pandas")

N = 400
CITIES = ["Bonn", "New York", "Ulm", "São Paulo", "Bad Ems and more"]


def make_frame():
    rng = np.random.default_rng(0)
    age = np.round(rng.uniform(0, 90, N), 1)
    age[rng.random(N) < 0.1] = np.nan
    city = rng.choice(np.array([*CITIES, None], dtype=object), N)
    time = np.datetime64("2024-01-01T00:00") + rng.integers(0, 5000, N) * np.timedelta64(15, "m")
    time[rng.random(N) < 0.1] = "NaT"
    day = np.datetime64("1968-12-20") + rng.integers(0, 900, N) * np.timedelta64(1, "D")
    return pandas.DataFrame(
        {
            "age": age,
            "rooms": rng.integers(-3, 8, N),
            "id": 2**60 + rng.permutation(N),
            "city": city,
            "alive": pandas.array(rng.choice([True, False, None], N), dtype="boolean"),
            "time": time,
            "day": day,
            "length (cm)": rng.normal(size=N),
        }
    )


FRAME = make_frame()


@pytest.fixture(scope="module")
def page(shared, tmp_path_factory):
    X = np.random.default_rng(1).normal(size=(N, 2))
    model = KernelPCA(2, kernel="rbf", gamma=0.5).fit(X)
    path = tmp_path_factory.mktemp("search") / "page.html"
    explore(model, X, table=FRAME, second=None).save(path)
    return shared.go(path)


def search(page, query):
    """Search as a user does, and return the selected rows."""
    box = page.page.get_by_label("Search")
    box.fill(query)
    box.press("Enter")
    page.until("/selected|Nothing/.test(ex.status.textContent) || ex.searchError.textContent")
    assert page("ex.searchError.textContent") == ""
    return page("Array.from(ex.selectedRows())")


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("age > 40", "age > 40"),
        ("age <= 12.5", "age <= 12.5"),
        ("age >= 18 and age < 65", "age >= 18 and age < 65"),
        ("18 <= age < 65", "18 <= age < 65"),
        ("65 > age >= 18", "65 > age >= 18"),
        ("age between 18 and 65", "18 <= age <= 65"),
        ("age not between 18 and 65", "age < 18 or age > 65"),
        ("not age between 18 and 65", "not 18 <= age <= 65"),
        ("age is missing", "age.isna()"),
        ("age is not missing", "age.notna()"),
        ("not age > 40", "not age > 40"),  # with the missing values
        ("age != 40", "age != 40 and age.notna()"),  # without the missing values
        ("rooms = 3", "rooms == 3"),
        ("rooms == -2", "rooms == -2"),
        ("rooms in (1, 2, -3)", "rooms in [1, 2, -3]"),
        ("rooms not in (1, 2)", "rooms not in [1, 2]"),
        ("rooms in 2-5", "2 <= rooms <= 5"),
        ("rooms in -3--1", "-3 <= rooms <= -1"),
        ("rooms <> 3 and 2 < rooms", "rooms != 3 and 2 < rooms"),
        ("id = 1152921504606847000", "id == 1152921504606847000"),
        ("id != 1152921504606847000", "id != 1152921504606847000"),
        ("id > 1152921504606847100", "id > 1152921504606847100"),
        (
            "id between 1152921504606847001 and 1152921504606847003",
            "1152921504606847001 <= id <= 1152921504606847003",
        ),
        ("id in (1152921504606846976, 1152921504606846977)", "id < 1152921504606846978"),
        ("city = Bonn", "city == 'Bonn'"),
        ("city = bonn or city = ULM", "city == 'Bonn' or city == 'Ulm'"),
        ("city == 'New York'", "city == 'New York'"),
        ("city != New York", "city != 'New York' and city.notna()"),
        ('city in (Bonn, "New York", São Paulo)', "city in ['Bonn', 'New York', 'São Paulo']"),
        ("city not in (Bonn, Ulm)", "city not in ['Bonn', 'Ulm'] and city.notna()"),
        ("not city in (Bonn, Ulm)", "city not in ['Bonn', 'Ulm']"),
        ('city = "Bad Ems and more"', "city == 'Bad Ems and more'"),
        ("city : o", "city.str.contains('o') == True"),
        ("city is missing or city = Ulm", "city.isna() or city == 'Ulm'"),
        ("alive = true", "alive.eq(True).fillna(False)"),
        ("alive != true", "alive.eq(False).fillna(False)"),
        ("alive and rooms > 2", "alive.eq(True).fillna(False) and rooms > 2"),
        ("not alive", "not alive.eq(True).fillna(False)"),
        ("alive is missing", "alive.isna()"),
        ("day < 1970-01-01", "day < '1970-01-01'"),
        ("1969-06-01 <= day < 1969-07-01", "'1969-06-01' <= day < '1969-07-01'"),
        ("day = 1970-01-01", "'1970-01-01' <= day <= '1970-01-01'"),
        ("day > 1969", "day > '1969-01-01'"),
        ("day : 1969-06", "'1969-06-01' <= day < '1969-07-01'"),
        ("time < 2024-01-15", "time < '2024-01-15'"),
        ("time >= 2024-01-15T12:30Z and time <= 2024-02-01 06:15",
         "time >= '2024-01-15 12:30' and time <= '2024-02-01 06:15'"),
        ("time between 2024-01-10 and 2024-01-20T12:00",
         "'2024-01-10' <= time <= '2024-01-20T12:00'"),
        ("time is missing", "time.isna()"),
        ("not time < 2024-02-01", "not time < '2024-02-01'"),
        ("`length (cm)` > 0.5", "`length (cm)` > 0.5"),
        ('"length (cm)" > 0.5 or length (cm) < -1', "`length (cm)` > 0.5 or `length (cm)` < -1"),
        ("row = 12", "index == 11"),
        ("row >= 100 and row < 103", "index >= 99 and index < 102"),
        ("row in 3-10", "2 <= index <= 9"),
        ("row in (1, 7, 20-22)", "index in [0, 6, 19, 20, 21]"),
        ("(age < 18 or age > 65) and not (city = Bonn or rooms > 2)",
         "(age < 18 or age > 65) and not (city == 'Bonn' or rooms > 2)"),
        ("age < 18 or age > 65 and rooms = 1", "age < 18 or (age > 65 and rooms == 1)"),
        ("not (not age < 18)", "age < 18"),
    ],
)  # fmt: skip
def test_queries_select_the_rows_of_pandas(page, query, expression):
    found = search(page, query)
    expected = FRAME.query(expression, engine="python").index.tolist()
    assert found == expected
    assert 0 < len(expected) < N


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("age is", 'At character 7: "missing" or "not missing" is expected after "age is".'),
        ("age is gone", '"missing" or "not missing" is expected after "age is", but found "gone"'),
        ("city is Bonn", "To compare values use ="),
        (
            "rooms > 1 and agee > 3",
            'At character 15: There is no column "agee"; did you mean "age"',
        ),
        ("agee is missing", 'At character 1: There is no column "agee"; did you mean "age"'),
        ("towns in (Bonn)", 'There is no column "towns". Columns are age, alive, city'),
        ("towns between 3 and 4", 'There is no column "towns"'),
        ("10 <= agee < 20", 'At character 7: There is no column "agee"'),
        ("10 <= age > 20", "A range needs two signs of the same direction"),
        ("age between 10", '"and" is expected in "age between … and …".'),
        ("age between 10 or 20", '"and" is expected in "age between … and …", but found "or 20"'),
        ("city in Bonn", 'A list of values in parentheses is expected after "city in"'),
        ("city in (Bonn", '"," or ")" is expected in the list of values.'),
        ('city in (Bonn "Ulm")', 'expected in the list of values, but found ""Ulm")"'),
        ("city in ()", 'A value is missing after "city in (".'),
        ("city in (Bonn,)", 'A value is missing after ",".'),
        ("city = Bon", 'At character 1: "city" has no value "Bon"; did you mean "Bonn"?'),
        ("rooms = 1 or city in (Bonn, Olm)", 'character 14: "city" has no value "Olm"; did you me'),
        ("city != Tokio", '"city" has no value "Tokio". Its values are Bad Ems and more, Bonn'),
        ("city = missing", 'Use "city is missing" to find missing values.'),
        ("age = nan", 'Use "age is missing" to find missing values.'),
        ("alive = yes", '"alive" has no value "yes". Its values are false, true.'),
        ("city > Bonn", "which > cannot compare"),
        ("alive < true", "which < cannot compare"),
        ("age : 4", '":" searches in text'),
        ("age like 4", '"like" is not an operator'),
        ("city contains Bonn", '"contains" is not an operator'),
        ("age > 10 < 20", '"<" is not expected in the value "10 < 20"'),
        ("city = Bonn && age > 3", "is not expected in the value"),
        ("age => 3", '">" is not expected in the value'),
        ("time = 2024-01-15", '"2024-01-15" is not a single time. To find all of 2024-01-15, use'),
        ("day = 1969-06", '"1969-06" is not a single day'),
        ("day > soon", '"soon" is not an ISO date'),
        ("row = last", '"row" contains numbers, but "last" is not a number.'),
        ("row is", '"missing" or "not missing" is expected'),
        ("id > 1152921504606847100.5", "is not an integer"),
        ("age > 3 city = Bonn", "is not expected in the value"),
    ],
)
def test_text_that_is_not_understood_is_an_error(page, query, words):
    search(page, "row in 1-3")
    page.page.get_by_label("Search").fill(query)
    page.page.get_by_label("Search").press("Enter")
    page.until("ex.searchError.textContent !== ''")
    assert words in page("ex.searchError.textContent")
    assert page("Array.from(ex.selectedRows())") == [0, 1, 2]  # as before


# --------------------------------------------------------------------------------- random queries


def literal_test(sign, values, limit):
    """Compare values with a limit; missing values are False."""
    present = ~pandas.isna(values)
    compare = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "=": "eq", "!=": "ne"}[sign]
    return np.asarray(getattr(values, compare)(limit).fillna(False), dtype=bool) & present


class RandomQuery:
    """A generator of random queries as text, each with the mask of the rows that satisfy it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def choice(self, options):
        return options[self.rng.integers(len(options))]

    def value(self, name):
        """Return a value that occurs in a column, as text and as an object."""
        if name == "row":
            number = int(self.rng.integers(1, N + 1))
            return str(number), number
        value = self.choice(FRAME[name].dropna().unique())
        if name in ("time", "day"):
            unit = "D" if name == "day" else "m"
            return str(np.datetime_as_string(np.datetime64(value), unit)), value
        if name == "city":
            forms = [f'"{value}"', f"'{value}'", value, value.upper()]
            return self.choice(forms[: 2 if " and " in value else 4]), value
        text = {"True": "true", "False": "False"}.get(
            str(value), repr(getattr(value, "item", lambda: value)())
        )
        return text, value

    def condition(self):
        name = self.choice([*FRAME.columns, "row"])
        values = pandas.Series(np.arange(1, N + 1)) if name == "row" else FRAME[name]
        present = np.asarray(values.notna())
        shown = self.choice([f'"{name}"', f"`{name}`", name, name.upper()])
        is_ordered = name not in ("city", "alive")
        form = self.rng.integers(6 if is_ordered else 3)
        negated = bool(self.rng.integers(2))
        word = "not " if negated else ""
        if form == 0:
            return f"{shown} is {word}missing", present if negated else ~present
        if form == 1:
            chosen = [self.value(name) for _ in range(self.rng.integers(1, 5))]
            text = self.choice([",", ", ", " , "]).join(text for text, _ in chosen)
            mask = np.asarray(values.isin([value for _, value in chosen]))
            return f"{shown} {word}in ({text})", present & (mask != negated)
        text, value = self.value(name)
        if form == 2 or not is_ordered:
            sign = self.choice(["=", "!=", "<", ">=", "<=", ">"][: 6 if is_ordered else 2])
            space = self.choice(["", " "])
            return f"{shown}{space}{sign}{space}{text}", literal_test(sign, values, value)
        more, other = self.value(name)
        if form == 3:
            mask = literal_test(">=", values, value) & literal_test("<=", values, other)
            return f"{shown} {word}between {text} and {more}", present & (mask != negated)
        first, second = self.choice([("<", "<="), ("<=", "<"), ("<", "<")])
        if form == 4:
            mirrored = literal_test({"<": ">", "<=": ">="}[first], values, value)
            return f"{text} {first} {shown} {second} {more}", mirrored & literal_test(
                second, values, other
            )
        return f"{text} >= {shown}", literal_test("<=", values, value)

    def query(self, depth):
        if depth == 0 or self.rng.random() < 0.2:
            return self.condition()
        if self.rng.random() < 0.25:
            text, mask = self.query(depth - 1)
            return f"{self.choice(['not ', 'NOT '])}({text})", ~mask
        word = self.choice(["and", "or"])
        parts = [self.query(depth - 1) for _ in range(self.rng.integers(2, 4))]
        text = f" {self.choice([word, word.upper()])} ".join(f"({text})" for text, _ in parts)
        combine = np.logical_and if word == "and" else np.logical_or
        return text, combine.reduce([mask for _, mask in parts])


def test_random_queries_equal_numpy(page):
    random = RandomQuery(7)
    queries = [random.query(depth) for depth in (0, 1, 2, 3) for _ in range(150)]
    found = page(
        """async queries => {
          const found = [];
          for (const query of queries) {
            await ex.runSearch(query);
            found.push(ex.searchError.textContent || Array.from(ex.selectedRows()));
          }
          return found;
        }""",
        [text for text, _ in queries],
    )
    wrong = [
        (text, rows)
        for (text, mask), rows in zip(queries, found, strict=True)
        if rows != np.flatnonzero(mask).tolist()
    ]
    assert wrong == []
    assert sum(0 < mask.sum() < N for _, mask in queries) > 400


# ------------------------------------------------------------------------------------ suggestions


def suggested(page):
    return page.page.locator(".suggestions li span").all_inner_texts()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ag", ["age"]),
        ("age > 3 and (not ci", ["city"]),
        ("len", ['"length (cm)"']),
        ("age ", ["=", "<", "<=", ">", ">=", "between", "is missing"]),
        ("CITY ", ["=", "!=", ":", "in (", "is missing"]),
        ("city = b", ['"Bad Ems and more"', "Bonn"]),
        ('city = "ne', ["New York"]),
        ("city != York or city = paulo", ["São Paulo"]),
        ("city in (Bonn, u", ["Ulm", "São Paulo"]),
        ("city = ", ['"Bad Ems and more"', "Bonn", "New York", "São Paulo", "Ulm"]),
        ("alive = t", ["true"]),
        ("age > ", []),
        ("city = Bonn", []),
        ("row = 1", []),
        ("", []),
    ],
)
def test_suggestions(page, typed, expected):
    page.page.get_by_label("Search").fill(typed)
    assert suggested(page) == expected
    assert page.page.locator(".suggestions").is_visible() == bool(expected)
    if expected:
        page.page.get_by_label("Search").press("Escape")  # closes the list, and keeps the text
        assert not page.page.locator(".suggestions").is_visible()
        assert page.page.get_by_label("Search").input_value() == typed


def test_a_query_by_keyboard_with_suggestions(page):
    box = page.page.get_by_label("Search")
    box.fill("")
    box.press_sequentially("ci")
    assert box.get_attribute("role") == "combobox"
    assert box.get_attribute("aria-expanded") == "true"
    box.press("ArrowDown")
    active = page.page.locator(f"#{box.get_attribute('aria-activedescendant')}")
    assert active.get_attribute("aria-selected") == "true" and active.inner_text().startswith(
        "city"
    )
    box.press("Enter")  # accepts, but does not search
    assert box.input_value() == "city "
    box.press("ArrowUp")
    box.press("ArrowUp")
    box.press("Enter")
    assert box.input_value() == "city in ("
    box.press_sequentially("ne")
    box.press("ArrowDown")
    box.press("Enter")
    box.press_sequentially(", ulm)")
    assert box.input_value() == "city in (New York , ulm)"
    box.press("Enter")
    page.until("/Ulm|ulm/.test(ex.status.textContent)")
    expected = np.flatnonzero(FRAME["city"].isin(["New York", "Ulm"])).tolist()
    assert page("Array.from(ex.selectedRows())") == expected
    box.fill("alive = tr")  # Enter searches if no suggestion was chosen
    assert suggested(page) == ["true"]
    box.press("Enter")
    page.until("ex.searchError.textContent !== ''")
    assert 'did you mean "true"?' in page("ex.searchError.textContent")
    assert not page.page.locator(".suggestions").is_visible()
    box.fill("al")
    page.page.locator(".suggestions li").first.click()
    assert box.input_value() == "alive " and box.evaluate("box => box === document.activeElement")
