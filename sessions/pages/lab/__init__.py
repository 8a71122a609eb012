"""The lab: what each policy makes of a session that one describes by a few numbers."""
