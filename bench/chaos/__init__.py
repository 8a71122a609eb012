"""Kill, stop and starve every part of an instance while agents write, then check what it stored."""
