"""From a request to a batch of edits with its record.

`pipeline.plan` runs the steps of a policy on a `request`, `record` describes the result, and `preparation`
plans before the trigger fires.
"""
