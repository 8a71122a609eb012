"""Plan a compaction: which edits to make, and what they change.

`pipeline.plan` runs the steps of a policy on a `request` and returns a batch of edits with its `record`. The
record lists each exception to the rule that head and tail stay `verbatim`. `memory_edits` shows the working
memory in the compacted prompt. `preparation` plans a hard compaction before it is triggered.
"""
