"""Working memory: notes that stay in the prompt when old turns are compacted.

`values` defines the memory, `schema` its fields, `origins` the author of each item, `operations` the changes
that the agent's tool makes, `diffs` the changes between revisions. `updates` keeps the memory current from
tool results, `extraction` from new turns that a model reads.
"""
