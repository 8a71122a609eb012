"""Memory extraction: a model reads the new turns and suggests changes to the working memory.

`schedule` decides when the model is called, `prompt` builds the request, `reply` parses the reply into
suggestions, and `apply` decides which of them change the memory. Tool results are processed by
`compaction.memory.updates` instead.
"""
