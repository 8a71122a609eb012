"""Referenced later: whether agents needed what compactions took away; checked in the background."""
