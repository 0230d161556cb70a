"""A file whose import fails."""

import json

json.loads("{")
