"""The folder is on the path where asv imports it as a package, as it is where a file is run as a script."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
