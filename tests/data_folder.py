"""The folder of external data sets that tests marked `data` read."""

import os
from pathlib import Path

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
